//! tonic against the daemon: ADDRESS SESSION. The cases bear the names of gRPC's interop tests.
use std::time::{Duration, Instant};

use prost::Message;
use tokio_stream::StreamExt;
use tonic::codec::CompressionEncoding;
use tonic::metadata::MetadataValue;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

#[allow(dead_code)]
mod tribo {
    tonic::include_proto!("tribo.v1");
}
#[allow(dead_code)]
mod rpc {
    tonic::include_proto!("google.rpc");
}
use tribo::simulation_client::SimulationClient;

const LARGE: usize = 63 << 20;

struct Report(u32, u32);

impl Report {
    fn check(&mut self, good: bool, what: &str) {
        if good {
            self.0 += 1;
        } else {
            self.1 += 1;
            println!("FAILED: {what}");
        }
    }
    fn code<T>(&mut self, got: Result<T, Status>, wanted: Code, what: &str) {
        let code = got.err().map_or(Code::Ok, |s| s.code());
        self.check(code == wanted, &format!("{what}: {code:?}, not {wanted:?}"));
    }
}

fn timed<T>(message: T, timeout: Duration) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(timeout);
    request
}

fn step(session: &str, tag: u64) -> tribo::StepStreamRequest {
    let step = tribo::StepRequest {
        session_id: session.into(),
        steps: 1,
        ..Default::default()
    };
    tribo::StepStreamRequest {
        step: Some(step),
        tag,
    }
}

fn steps(session: &str, count: u64) -> impl tokio_stream::Stream<Item = tribo::StepStreamRequest> {
    let session = session.to_string();
    tokio_stream::iter(0..count).map(move |tag| step(&session, tag))
}

fn asset(name: &str, size: usize) -> tribo::PutAssetRequest {
    tribo::PutAssetRequest {
        name: name.into(),
        data: vec![7; size],
        ..Default::default()
    }
}

async fn unary(report: &mut Report, client: &mut SimulationClient<Channel>) -> Result<(), Status> {
    let mut request = timed(tribo::GetServerInfoRequest {}, Duration::from_secs(20));
    request
        .metadata_mut()
        .insert("x-grpc-test-echo-initial", "test_initial".parse().unwrap());
    request
        .metadata_mut()
        .insert_bin("x-grpc-test-bin", MetadataValue::from_bytes(b"\xab\xab\0"));
    let info = client.get_server_info(request).await?.into_inner();
    report.check(!info.version.is_empty(), "empty_unary, custom_metadata");
    let put = client.put_asset(tokio_stream::iter([asset("large", LARGE)])).await?;
    report.check(put.get_ref().size == LARGE as u64, "large_unary");
    let beyond = client.put_asset(tokio_stream::iter([asset("beyond", 65 << 20)])).await;
    report.code(beyond, Code::ResourceExhausted, "a message beyond the limit");
    let mut zipped = client
        .clone()
        .send_compressed(CompressionEncoding::Gzip)
        .accept_compressed(CompressionEncoding::Gzip);
    let put = zipped
        .put_asset(tokio_stream::iter([asset("zip", 1 << 20), asset("", 1)]))
        .await?;
    report.check(put.get_ref().size == (1 << 20) + 1, "client_compressed_streaming");
    let info = zipped.get_server_info(tribo::GetServerInfoRequest {}).await?;
    report.check(!info.get_ref().version.is_empty(), "server_compressed_unary");
    Ok(())
}

async fn failures(report: &mut Report, client: &mut SimulationClient<Channel>, channel: &Channel) {
    let nowhere = tribo::GetStateRequest {
        session_id: "0".repeat(32),
        ..Default::default()
    };
    let error = client.get_state(nowhere).await.err().unwrap_or(Status::ok(""));
    report.check(
        error.code() == Code::NotFound && error.message().contains("0000"),
        "status_code_and_message",
    );
    let details = rpc::Status::decode(error.details()).unwrap_or_default();
    report.check(
        details.code == 5 && details.details.iter().any(|d| d.type_url.ends_with("ErrorInfo")),
        "details of an error",
    );
    let mut grpc = tonic::client::Grpc::new(channel.clone());
    for (path, what) in [
        ("/tribo.v1.Simulation/Nothing", "unimplemented_method"),
        ("/tribo.v1.Nothing/Nothing", "unimplemented_service"),
    ] {
        grpc.ready().await.unwrap();
        let codec = tonic::codec::ProstCodec::<(), ()>::default();
        let got = grpc.unary(Request::new(()), path.parse().unwrap(), codec).await;
        report.code(got, Code::Unimplemented, what);
    }
}

async fn streams(
    report: &mut Report,
    client: &mut SimulationClient<Channel>,
    session: &str,
) -> Result<(), Status> {
    let answers = client.step_stream(steps(session, 500)).await?.into_inner();
    let tags: Vec<u64> = answers.filter_map(|a| a.ok()).map(|a| a.tag).collect().await;
    report.check(tags == (0..500).collect::<Vec<u64>>(), "ping_pong");
    let mut empty = client.step_stream(steps(session, 0)).await?.into_inner();
    report.check(matches!(empty.message().await, Ok(None)), "empty_stream");
    let mut many = client.step_stream(steps(session, 1_000_000)).await?.into_inner();
    report.check(many.message().await?.is_some(), "cancel_after_first_response");
    drop(many);

    let watch = tribo::WatchRequest {
        session_id: session.into(),
        ..Default::default()
    };
    let began = Instant::now();
    let request = timed(watch.clone(), Duration::from_millis(300));
    let mut stream = client.watch(request).await?.into_inner();
    let end = loop {
        match stream.message().await {
            Ok(Some(_)) => continue,
            other => break other,
        }
    };
    // tonic reports its own timeout as Cancelled, the server's as DeadlineExceeded
    let code = end.err().map_or(Code::Ok, |s| s.code());
    report.check(
        matches!(code, Code::DeadlineExceeded | Code::Cancelled)
            && began.elapsed() < Duration::from_secs(10),
        &format!("timeout_on_sleeping_server: {code:?}"),
    );
    let mut stream = client.watch(watch).await?.into_inner();
    client.step_stream(steps(session, 20)).await?.into_inner().message().await?;
    report.check(stream.message().await?.is_some(), "server_streaming");
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let channel = Channel::from_shared(format!("http://{}", arguments[1]))
        .unwrap()
        .connect()
        .await
        .expect("a connection");
    let mut client = SimulationClient::new(channel.clone());
    let mut report = Report(0, 0);
    if let Err(error) = unary(&mut report, &mut client).await {
        report.check(false, &format!("unary: {error}"));
    }
    failures(&mut report, &mut client, &channel).await;
    if let Err(error) = streams(&mut report, &mut client, &arguments[2]).await {
        report.check(false, &format!("streams: {error}"));
    }
    println!("{} passed, {} failed, 0 skipped", report.0, report.1);
    std::process::exit((report.1 > 0) as i32);
}
