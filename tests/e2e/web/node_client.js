// The Connect clients for Node: node node_client.js TRANSPORT GRPC HTTP < input > report
import { readFileSync } from "node:fs";

import {
  compressionGzip,
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";

import { play } from "./scenario.js";

const [name, grpc, http] = process.argv.slice(2);
const web = { baseUrl: `http://${http}`, httpVersion: "1.1" };
// gzip both ways, also for messages that are hardly worth it
const gzip = { sendCompression: compressionGzip, compressMinBytes: 1 };

const transports = {
  connect: () => createConnectTransport({ ...web, useBinaryFormat: true }),
  "connect-json": () => createConnectTransport({ ...web, useBinaryFormat: false }),
  "connect-gzip": () => createConnectTransport({ ...web, ...gzip }),
  "grpc-web": () => createGrpcWebTransport(web),
  "grpc-web-json": () => createGrpcWebTransport({ ...web, useBinaryFormat: false }),
  grpc: () => createGrpcTransport({ baseUrl: `http://${grpc}` }),
  "grpc-gzip": () => createGrpcTransport({ baseUrl: `http://${grpc}`, ...gzip }),
};

const input = JSON.parse(readFileSync(0, "utf8"));
const report = await play(transports[name](), { ...input, label: `node ${name}` });
process.stdout.write(JSON.stringify(report), () => process.exit(0));
