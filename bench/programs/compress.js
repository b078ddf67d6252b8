// Records to JSON, deflated and inflated by zlib, each on its own.
const fs = require('fs'), zlib = require('zlib');
let bytes = 0;
for (const record of JSON.parse(fs.readFileSync(process.argv[2]))) {
  const packed = zlib.deflateSync(JSON.stringify(record), {level: 1});
  bytes += packed.length + zlib.inflateSync(packed).length;
}
console.log(bytes);
