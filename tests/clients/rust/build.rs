// Messages and stubs from the protocol's files, which the runner names in TRIBO_PROTO.
fn main() {
    let proto = std::env::var("TRIBO_PROTO").expect("TRIBO_PROTO is the folder of the .proto files");
    let file = |name: &str| format!("{proto}/{name}");
    tonic_build::configure()
        .build_server(false)
        .compile_protos(
            &[
                file("tribo/v1/simulation.proto"),
                file("google/rpc/status.proto"),
                file("google/rpc/error_details.proto"),
            ],
            &[proto],
        )
        .unwrap();
}
