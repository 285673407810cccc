// The Connect clients for browsers, bundled into a page that another origin serves. The page asks
// its own origin for the input, plays each transport, and hands the reports back to it.
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-web";

import { play } from "./scenario.js";

const post = (path, value) => fetch(path, { method: "POST", body: JSON.stringify(value) });

// Whether the browser keeps an answer from a page; a network error is all that such a page sees.
async function kept(url) {
  try {
    const answer = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: "{}",
    });
    return `status ${answer.status}`;
  } catch (error) {
    return error.name;
  }
}

async function main() {
  const input = await (await fetch("input")).json();
  if (input.stranger)
    return [{ kept: await kept(`http://${input.http}/tribo.v1.Simulation/GetServerInfo`) }];
  const web = { baseUrl: `http://${input.http}` };
  const transports = {
    connect: createConnectTransport({ ...web, useBinaryFormat: true }),
    "connect-json": createConnectTransport({ ...web, useBinaryFormat: false }),
    "grpc-web": createGrpcWebTransport({ ...web, useBinaryFormat: true }),
  };
  const reports = [];
  for (const [name, transport] of Object.entries(transports))
    reports.push(await play(transport, { ...input, label: `chromium ${name}` }));
  return reports;
}

main().then(
  (reports) => post("reports", reports),
  (error) => post("reports", { error: `${error}\n${error.stack}` }),
);
