// Builds the dashboard into dist/, with a hash of its content in each name, a packed FILE.br beside
// each file, and the licences of the packages whose code is in it.
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { brotliCompressSync, constants } from "node:zlib";

import { defineConfig, type Plugin } from "vite";

/** The daemon that `npm run dev` asks. */
const DAEMON = process.env["TRIBOD_HTTP"] ?? "http://127.0.0.1:7480";

interface Package {
  name: string;
  version: string;
  license: string;
}

/** The licences of the packages that the bundle holds, as assets/licences.txt. */
function licences(): Plugin {
  const folders = new Set<string>();
  return {
    name: "licences",
    moduleParsed(module) {
      const found = /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(module.id.replace(/^\0/, ""));
      if (found?.[1] && existsSync(join(found[1], "package.json"))) folders.add(found[1]);
    },
    generateBundle() {
      const texts = [...folders].sort().map((folder) => {
        const about = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Package;
        const file = readdirSync(folder).find((name) => /^licen[cs]e/i.test(name));
        const text = file ? readFileSync(join(folder, file), "utf8").trim() : "";
        return `${about.name} ${about.version}: ${about.license}\n\n${text}\n`;
      });
      this.emitFile({
        type: "asset",
        fileName: "licences.txt",
        source: texts.join(`\n${"-".repeat(80)}\n\n`),
      });
    },
  };
}

/** FILE.br beside each file that brotli makes smaller. */
function packed(): Plugin {
  return {
    name: "packed",
    apply: "build",
    writeBundle(options, bundle) {
      for (const name of Object.keys(bundle)) {
        const path = join(options.dir ?? "dist", name);
        const plain = readFileSync(path);
        const small = brotliCompressSync(plain, {
          params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY },
        });
        if (small.length < plain.length) writeFileSync(`${path}.br`, small);
      }
    },
  };
}

export default defineConfig({
  plugins: [licences(), packed()],
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  build: {
    target: "es2022",
    assetsInlineLimit: 2048,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 1000,
    rollupOptions: {
      output: {
        manualChunks: (id) =>
          id.includes(join("node_modules", "three")) ? "three" : undefined,
      },
    },
  },
  server: { proxy: { "/tribo.v1.": DAEMON, "^/(livez|readyz|metrics)$": DAEMON } },
  cacheDir: relative(process.cwd(), "node_modules/.vite"),
});
