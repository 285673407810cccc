// grpc-js against the daemon: ADDRESS SESSION PROTO. The cases bear the names of gRPC's interop tests.
"use strict";
const grpc = require("@grpc/grpc-js");
const loader = require("@grpc/proto-loader");

const [address, session, proto] = process.argv.slice(2);
const files = ["tribo/v1/simulation.proto", "google/rpc/status.proto", "google/rpc/error_details.proto"];
const options = { includeDirs: [proto], keepCase: true, longs: Number, defaults: true };
const root = grpc.loadPackageDefinition(loader.loadSync(files, options));
const GZIP = { "grpc.default_compression_algorithm": 2 };
const ROOM = { "grpc.max_receive_message_length": -1, "grpc.max_send_message_length": -1 };
const LARGE = 63 << 20;
let passed = 0;
let failed = 0;

function check(good, what, ...values) {
  if (good) {
    passed++;
  } else {
    failed++;
    console.log(`FAILED: ${what}`, ...values);
  }
}

const soon = (seconds) => ({ deadline: Date.now() + 1000 * seconds });

// The answer of a call, or its error.
function answer(begin) {
  return new Promise((resolve) => begin((error, value) => resolve({ error, value })));
}

function put(client, name, sizes) {
  return answer((done) => {
    const call = client.PutAsset(new grpc.Metadata(), soon(30), done);
    call.on("error", () => {});
    sizes.forEach((size, i) => call.write({ name: i === 0 ? name : "", data: Buffer.alloc(size) }));
    call.end();
  });
}

// The answers of a stream until it ends, and how it ended.
function read(call, each = () => {}) {
  return new Promise((resolve) => {
    const values = [];
    call.on("data", (value) => {
      values.push(value);
      each(value, values.length);
    });
    call.on("error", () => {});
    call.on("status", (status) => resolve({ values, code: status.code }));
  });
}

const step = (tag) => ({ step: { session_id: session, steps: 1 }, tag });

async function unary(client, zipped) {
  const metadata = new grpc.Metadata();
  metadata.set("x-grpc-test-echo-initial", "test_initial");
  metadata.set("x-grpc-test-bin", Buffer.from([0xab, 0xab, 0]));
  const info = (c) => answer((done) => c.GetServerInfo({}, metadata, soon(20), done));
  let got = await info(client);
  check(got.value && got.value.version, "empty_unary, custom_metadata", got.error);
  got = await info(zipped);
  check(got.value && got.value.version, "server_compressed_unary", got.error);
  got = await put(client, "large", [LARGE]);
  check(got.value && got.value.size === LARGE, "large_unary", got.error);
  got = await put(zipped, "zip", [1 << 20, 1]);
  check(got.value && got.value.size === (1 << 20) + 1, "client_compressed_streaming", got.error);
}

async function failures(client) {
  const nowhere = { session_id: "0".repeat(32) };
  let { error } = await answer((done) => client.GetState(nowhere, soon(20), done));
  check(error && error.code === grpc.status.NOT_FOUND, "status_code_and_message", error);
  check(error && error.details.includes("0000"), "the message of an error", error);
  const [details] = error ? error.metadata.get("grpc-status-details-bin") : [];
  check(details && details.includes("google.rpc.ErrorInfo"), "details of an error", details);
  const text = { text: "<mujoco><ü/></mujoco>" };
  ({ error } = await answer((done) => client.CreateScene(text, soon(20), done)));
  check(error && error.details.includes("ü"), "special_status_message", error);
  const raw = (bytes) => bytes;
  for (const [path, what] of [
    ["/tribo.v1.Simulation/Nothing", "unimplemented_method"],
    ["/tribo.v1.Nothing/Nothing", "unimplemented_service"],
  ]) {
    ({ error } = await answer((done) =>
      client.makeUnaryRequest(path, raw, raw, Buffer.alloc(0), new grpc.Metadata(), soon(20), done)));
    check(error && error.code === grpc.status.UNIMPLEMENTED, what, error);
  }
  ({ error } = await answer((done) => client.PutAsset(done).cancel()));
  check(error && error.code === grpc.status.CANCELLED, "cancel_after_begin", error);
}

async function streams(client) {
  let call = client.StepStream(soon(30));
  call.write(step(0));
  let got = await read(call, (value, n) => (n < 500 ? call.write(step(n)) : call.end()));
  const ordered = got.values.every((value, i) => value.tag === i);
  check(got.code === 0 && got.values.length === 500 && ordered, "ping_pong", got.code, got.values.length);
  call = client.StepStream(soon(20));
  call.end();
  got = await read(call);
  check(got.code === 0 && got.values.length === 0, "empty_stream", got.code);
  call = client.StepStream(soon(20));
  call.write(step(0));
  got = await read(call, () => call.cancel());
  check(got.code === grpc.status.CANCELLED, "cancel_after_first_response", got.code);
  got = await read(client.Watch({ session_id: session }, soon(0.3)));
  check(got.code === grpc.status.DEADLINE_EXCEEDED, "timeout_on_sleeping_server", got.code);
  const watch = client.Watch({ session_id: session }, soon(20));
  const seen = read(watch, () => watch.cancel());
  call = client.StepStream(soon(20));
  read(call);
  for (let tag = 0; tag < 20; tag++) call.write(step(tag));
  call.end();
  got = await seen;
  check(got.values.length > 0, "server_streaming", got.code);
}

async function main() {
  const plain = grpc.credentials.createInsecure();
  const client = new root.tribo.v1.Simulation(address, plain, ROOM);
  const zipped = new root.tribo.v1.Simulation(address, plain, { ...ROOM, ...GZIP });
  await unary(client, zipped);
  await failures(client);
  await streams(client);
  client.close();
  zipped.close();
  console.log(`${passed} passed, ${failed} failed, 0 skipped`);
  process.exit(failed > 0 ? 1 : 0);
}

main();
