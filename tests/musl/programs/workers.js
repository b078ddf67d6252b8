// A ring of worker threads that hand buffers on to each other, libuv's own threads, and children; says the same each time.
const {Worker, MessageChannel, isMainThread, parentPort, workerData} = require('worker_threads');
const {fork, spawnSync} = require('child_process');
const crypto = require('crypto'), fs = require('fs'), util = require('util'), zlib = require('zlib');

const kWorkers = 4, kHops = Number(process.argv[2] || 60), kChildren = 3;
const digest = data => crypto.createHash('sha256').update(data).digest('hex').slice(0, 16);

function hand_on() {
  // A longer buffer goes on: what this thread has asked for is freed by the next.
  workerData.from.on('message', ({buffer, hops}) => {
    const longer = new Uint8Array(buffer.byteLength + 700);
    longer.set(new Uint8Array(buffer));
    longer.set(Buffer.from(digest(zlib.deflateSync(Buffer.from(buffer)))), buffer.byteLength);
    if (hops === kHops) parentPort.postMessage(digest(longer));
    else workerData.to.postMessage({buffer: longer.buffer, hops: hops + 1}, [longer.buffer]);
  });
}

async function ring() {
  const channels = Array.from({length: kWorkers}, () => new MessageChannel());
  const workers = channels.map(({port2}, i) => {
    const to = channels[(i + 1) % kWorkers].port1;
    return new Worker(__filename, {argv: [kHops], workerData: {from: port2, to}, transferList: [port2, to]});
  });
  const ends = workers.map(worker => new Promise(end => worker.once('message', end)));
  workers.forEach((worker, i) => worker.postMessage(new Uint8Array(1000).fill(i).buffer));
  const found = await Promise.all(ends);
  await Promise.all(workers.map(worker => worker.terminate()));
  return found.sort();
}

async function pool() {
  const text = Buffer.from(Array.from({length: 30000}, (_, i) => `${i * 7919 % 10007} `).join(''));
  const [derived, packed, squeezed] = await Promise.all([
    util.promisify(crypto.scrypt)('word', 'salt', 32, {N: 4096}),
    util.promisify(zlib.gzip)(text), util.promisify(zlib.brotliCompress)(text)]);
  const file = `/tmp/workers.${process.pid}`;
  await fs.promises.writeFile(file, packed);
  const back = zlib.gunzipSync(await fs.promises.readFile(file));
  fs.unlinkSync(file);
  return [digest(derived), digest(back), digest(zlib.brotliDecompressSync(squeezed))];
}

const child = i => new Promise((end, fail) => {
  const process = fork(__filename, ['child', i]);
  let answer;
  process.on('message', message => { answer = message; });
  process.on('exit', code => code === 0 ? end(answer) : fail(new Error(`a child ended with ${code}`)));
});

function objects(seed) {
  const rows = Array.from({length: 20000}, (_, i) => ({name: `row ${(i * seed) % 9973}`, values: [i, i * seed, `${i}`]}));
  rows.sort((a, b) => a.name < b.name ? -1 : a.name > b.name ? 1 : a.values[0] - b.values[0]);
  return digest(JSON.stringify(JSON.parse(JSON.stringify(rows))));
}

async function all() {
  const shell = spawnSync('/bin/sh', ['-c', 'for i in 3 1 2; do echo $i; done | sort'], {encoding: 'utf8'});
  const children = await Promise.all(Array.from({length: kChildren}, (_, i) => child(i + 2)));
  console.log(JSON.stringify({ring: await ring(), pool: await pool(), children, shell: shell.stdout}));
}

if (!isMainThread) {
  parentPort.once('message', buffer => { workerData.to.postMessage({buffer, hops: 0}, [buffer]); hand_on(); });
} else if (process.argv[2] === 'child') {
  process.send(objects(Number(process.argv[3])), () => process.disconnect());
} else {
  all();
}
