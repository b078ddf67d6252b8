// Buffers through zlib in the thread pool, and messages to worker threads.
const zlib = require('zlib'), crypto = require('crypto');
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
if (!isMainThread) {
  const table = new Map();
  for (let i = 0; i < 20000; i++) table.set('k' + (i * workerData % 5003), Buffer.alloc(i % 300, i % 251));
  let sum = 0;
  for (const value of table.values()) sum += value.reduce((a, b) => a + b, 0);
  parentPort.postMessage(sum);
} else {
  const input = Buffer.alloc(100000, 'abcdefghij0123456789');
  const jobs = Array.from({ length: 60 }, (_, i) => new Promise((resolve, reject) =>
    zlib.deflate(input.subarray(0, 1000 + i * 1500), (e, out) => e ? reject(e) : resolve(out))));
  const workers = [3, 7, 11].map((n) => new Promise((resolve, reject) => {
    const worker = new Worker(__filename, { workerData: n });
    worker.on('message', resolve);
    worker.on('error', reject);
  }));
  Promise.all(jobs).then((outputs) => {
    const hash = crypto.createHash('sha256');
    for (const out of outputs) hash.update(zlib.inflateSync(out));
    console.log(hash.digest('hex'));
    return Promise.all(workers);
  }).then((sums) => console.log(sums.join(' ')));
}
