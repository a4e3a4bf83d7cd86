// node bullmq.mjs add|work HOST:PORT N: adds N jobs, or does them with 64 at a time, each of which adds its job again for in an hour.
import { Queue, Worker } from 'bullmq';

const [verb, address, count] = process.argv.slice(2);
const [host, port] = address.split(':');
const connection = { host, port: Number(port), maxRetriesPerRequest: null };
const total = Number(count);
const queue = new Queue('refresh', { connection });
const forget = { removeOnComplete: true, removeOnFail: true };

function payload(i) {
  const uid = `tbl_${String(i).padStart(9, '0')}`;
  return { big_table_uid: uid, input_url: `https://feeds.example.com/${uid}/`.padEnd(100, 'x') };
}

if (verb === 'add') {
  for (let first = 0; first < total; first += 500) {
    const jobs = [];
    for (let i = first; i < Math.min(total, first + 500); i += 1) {
      jobs.push({ name: 'refresh', data: payload(i), opts: forget });
    }
    await queue.addBulk(jobs);
  }
} else {
  const began = process.hrtime.bigint();
  const idle = process.cpuUsage();
  let done = 0;
  await new Promise((resolve, reject) => {
    const worker = new Worker('refresh', async (job) => {
      await queue.add('refresh', job.data, { ...forget, delay: 3600 * 1000 });
    }, { connection, concurrency: 64 });
    worker.on('completed', () => {
      done += 1;
      if (done === total) {
        worker.close(true).then(resolve, reject);
      }
    });
    worker.on('failed', (_, error) => reject(error));
  });
  const { user, system } = process.cpuUsage(idle);
  console.log(JSON.stringify({ seconds: Number(process.hrtime.bigint() - began) / 1e9, micros: user + system }));
}
await queue.close();
process.exit(0);
