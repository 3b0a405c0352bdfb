// Runs ONNX models in onnxruntime (npm's onnxruntime-node) under node, unoptimized.
//   node run_onnx.js PACKAGE_DIR
// Each line of standard input is a job {model, inputs: [{name, type, shape, file}], folder}: files
// are raw little-endian tensors; folder gets output_K.bin. Each line of standard output answers a
// job: names, types and shapes of the outputs that are numbers, in the model's order, or {error}.
'use strict';
const fs = require('fs');
const path = require('path');
const readline = require('readline');

const KINDS = {float32: Float32Array, uint8: Uint8Array, int8: Int8Array, uint16: Uint16Array,
               int16: Int16Array, int32: Int32Array, int64: BigInt64Array};

async function runJob(ort, {model, inputs, folder}) {
  const session = await ort.InferenceSession.create(
      model, {graphOptimizationLevel: 'disabled', intraOpNumThreads: 1, logSeverityLevel: 3});
  const feeds = {};
  for (const {name, type, shape, file} of inputs) {
    const bytes = fs.readFileSync(file);
    const data = new KINDS[type](bytes.buffer.slice(bytes.byteOffset,
                                                    bytes.byteOffset + bytes.length));
    feeds[name] = new ort.Tensor(type, data, shape);
  }
  const results = await session.run(feeds);
  const numeric = session.outputNames.filter((name) => results[name].type !== 'string');
  return {outputs: numeric.map((name, k) => {
    const {data, type, dims} = results[name];
    fs.writeFileSync(path.join(folder, `output_${k}.bin`),
                     Buffer.from(data.buffer, data.byteOffset, data.byteLength));
    return {name, type, shape: dims};
  })};
}

async function main([dir]) {
  const ort = require(path.resolve(dir));
  for await (const line of readline.createInterface({input: process.stdin})) {
    let answer;
    try {
      answer = await runJob(ort, JSON.parse(line));
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
