// The calls that every Connect client makes, in Node and in a browser alike. The clients are
// unmodified packages of npm; protoc-gen-es makes the stubs of the project's .proto files.
//
// play() returns plain JSON: answers as base64 of protobuf's bytes, and errors as the client's own
// library decodes them. tests/e2e/clients_agree.py judges.
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { base64Decode, base64Encode } from "@bufbuild/protobuf/wire";
import { Code, ConnectError, createClient } from "@connectrpc/connect";

import {
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
} from "./generated/google/rpc/error_details_pb.js";
import {
  EvaluateGraspsRequestSchema,
  EvaluateGraspsResponseSchema,
  Grasp,
} from "./generated/tribo/v1/grasp_pb.js";
import { RunStatus, Runs } from "./generated/tribo/v1/runs_pb.js";
import { GetServerInfoResponseSchema, Simulation } from "./generated/tribo/v1/simulation_pb.js";

const bearer = (key) => ({ authorization: `Bearer ${key}` });
const pause = (milliseconds) => new Promise((wake) => setTimeout(wake, milliseconds));
const seconds = (since) => (performance.now() - since) / 1000;

// The error of a call, as the client's library reports it.
function failure(error) {
  const e = ConnectError.from(error);
  const fields = e.findDetails(BadRequestSchema).flatMap((d) => d.fieldViolations);
  const retry = e.findDetails(RetryInfoSchema)[0]?.retryDelay;
  return {
    code: Code[e.code].replace(/(?!^)([A-Z])/g, "_$1").toUpperCase(),
    message: e.rawMessage,
    fields: fields.map((f) => f.field),
    reason: e.findDetails(ErrorInfoSchema)[0]?.reason ?? "",
    retry: retry ? Number(retry.seconds) + retry.nanos / 1e9 : null,
  };
}

async function refused(call) {
  try {
    await call();
  } catch (error) {
    return failure(error);
  }
  return { code: "OK" };
}

// Reads a stream to its end; each message as base64.
async function collect(stream) {
  const messages = [];
  for await (const message of stream)
    messages.push(base64Encode(toBinary(EvaluateGraspsResponseSchema, message)));
  return messages;
}

// Asks until the key's rate is used up.
async function rateLimited(runs, key) {
  for (let i = 0; i < 50; i++) {
    const answer = await refused(() => runs.listRuns({}, { headers: bearer(key) }));
    if (answer.code !== "OK") return answer;
  }
  return { code: "OK" };
}

// The newest run with this label.
async function findRun(runs, label, headers) {
  const answer = await runs.listRuns({ pageSize: 100 }, { headers });
  return answer.runs.find((run) => run.label === label);
}

// Breaks a job off after its first message; how it ended, and how soon by the daemon's books.
async function cancelled(grasp, runs, request, headers) {
  const controller = new AbortController();
  let aborted = 0;
  const error = await refused(async () => {
    for await (const _ of grasp.evaluateGrasps(request, { headers, signal: controller.signal })) {
      if (aborted === 0) aborted = Date.now();
      controller.abort();
    }
  });
  const began = performance.now();
  let run = await findRun(runs, request.label, headers);
  while ((run?.status ?? RunStatus.RUNNING) === RunStatus.RUNNING && seconds(began) < 30) {
    await pause(20);
    run = await findRun(runs, request.label, headers);
  }
  return {
    ...error,
    status: RunStatus[run?.status ?? 0],
    seconds: (Number(run?.endTimeUs ?? 0) / 1000 - aborted) / 1000,
  };
}

// transport  of one of the Connect packages
// input      {requests: {job, wrong, long: base64}, mesh: base64, label, key, slowKey}
export async function play(transport, input) {
  const requests = {};
  for (const [name, bytes] of Object.entries(input.requests)) {
    requests[name] = fromBinary(EvaluateGraspsRequestSchema, base64Decode(bytes));
    requests[name].label = `${name} of ${input.label}`;
  }
  const headers = bearer(input.key);
  const simulation = createClient(Simulation, transport);
  const grasp = createClient(Grasp, transport);
  const runs = createClient(Runs, transport);
  const job = (request, options) => collect(grasp.evaluateGrasps(request, options));

  const report = { client: input.label };
  const info = await simulation.getServerInfo({});
  report.info = base64Encode(toBinary(GetServerInfoResponseSchema, info));
  const mesh = { name: "mug.obj", data: base64Decode(input.mesh) };
  report.asset = (await simulation.createAsset(mesh, { headers })).sha256;
  report.noKey = await refused(() => job(requests.job, {}));
  report.wrongKey = await refused(() => job(requests.job, { headers: bearer("tribo_0_no") }));
  report.missing = await refused(() => simulation.getState({ sessionId: "0".repeat(32) }));
  report.wrong = await refused(() => job(requests.wrong, { headers }));
  report.job = await job(requests.job, { headers });
  report.limited = await rateLimited(runs, input.slowKey);
  const began = performance.now();
  report.deadline = await refused(() => job(requests.long, { headers, timeoutMs: 1000 }));
  report.deadline.seconds = seconds(began);
  requests.long.label += ", cancelled";
  report.cancelled = await cancelled(grasp, runs, requests.long, headers);
  return report;
}
