// Runs TFLite models in TensorFlow Lite itself (npm's @tensorflow/tfjs-tflite: wasm) under node.
//   node run_tflite.js PACKAGE_DIR
// Each line of standard input is a job {model, inputs: [file], folder}: inputs are raw little-endian
// tensors in the model's order, one item or many in a row; folder gets output_K.bin with the items
// in a row; without inputs nothing is run. Each line of standard output answers a job: what the model states, or {error}.
'use strict';
const fs = require('fs');
const path = require('path');
const readline = require('readline');

function runJob(api, {model, inputs, folder}) {
  const bytes = fs.readFileSync(model);
  const at = api._malloc(bytes.length);
  api.HEAPU8.set(bytes, at);
  const made = api.TFLiteWebModelRunner.CreateFromBufferAndOptions(
      at, bytes.length, {numThreads: 1, enableProfiling: false, maxProfilingBufferEntries: 0});
  if (!made.ok()) throw new Error(made.errorMessage());
  const runner = made.value();
  const list = (vector) => Array.from({length: vector.size()}, (_, i) => vector.get(i));
  const describe = (t) => ({name: t.name, type: t.dataType, shape: t.shape});
  const asBytes = (t) => {
    const data = t.data();
    return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  };
  const ins = list(runner.GetInputs());
  if (!inputs) return {inputs: ins.map(describe), outputs: list(runner.GetOutputs()).map(describe)};
  const data = inputs.map((file) => fs.readFileSync(file));
  if (data.length !== ins.length) throw new Error(`the model has ${ins.length} inputs`);
  const items = data.length ? data[0].length / asBytes(ins[0]).length : 1;
  const results = [];
  for (let item = 0; item < items; ++item) {
    ins.forEach((t, k) => {
      const target = asBytes(t);
      target.set(data[k].subarray(item * target.length, (item + 1) * target.length));
    });
    if (!runner.Infer()) throw new Error('Infer failed');
    list(runner.GetOutputs()).forEach((t, k) => {
      (results[k] = results[k] || []).push(Buffer.from(asBytes(t)));
    });
  }
  results.forEach((parts, k) => {
    fs.writeFileSync(path.join(folder, `output_${k}.bin`), Buffer.concat(parts));
  });
  return {inputs: ins.map(describe), outputs: list(runner.GetOutputs()).map(describe)};
}

async function main([dir]) {
  const wasm = path.resolve(dir, 'wasm', 'tflite_web_api_cc_simd');
  const log = () => {};
  const api = await require(wasm + '.js')(
      {wasmBinary: fs.readFileSync(wasm + '.wasm'), print: log, printErr: log});
  for await (const line of readline.createInterface({input: process.stdin})) {
    let answer;
    try {
      answer = runJob(api, JSON.parse(line));
    } catch (error) {
      answer = {error: String(error.message || error)};
    }
    process.stdout.write(JSON.stringify(answer) + '\n');
  }
}

main(process.argv.slice(2)).catch((error) => {
  process.stderr.write(`${error.message || error}\n`);
  process.exit(1);
});
