import { defineConfig } from "vite";

// Everything is a file of its own, so that the page works under a content security policy without
// any inline script, style or data.
export default defineConfig({
  build: { outDir: "dist", assetsInlineLimit: 0, target: "es2022", modulePreload: false },
  worker: { format: "es" },
});
