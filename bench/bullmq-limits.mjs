// node bullmq-limits.mjs add|work HOST:PORT N HOSTS AT_A_TIME MILLISECONDS SLOW: adds N jobs of HOSTS hosts, or does them, AT_A_TIME of a host, each for so
// long, and on the first host four times as long if SLOW is true; each adds its job again for in an hour. Tells what the workers have seen.
//
// Groups with a limit of their own are of the paid edition. Without them each host has a queue, and a worker of that concurrency: all hosts must
// be known ahead, each costs a connection, and a second process needs the global concurrency of each queue instead.
import { Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';

const [verb, address, count, hostCount, limit, work, slow] = process.argv.slice(2);
const [host, port] = address.split(':');
const connection = new Redis({ host, port: Number(port), maxRetriesPerRequest: null });
const [total, hosts, atATime, milliseconds] = [count, hostCount, limit, work].map(Number);
const forget = { removeOnComplete: true, removeOnFail: true };
const queues = Array.from({ length: hosts }, (_, h) => new Queue(hostName(h), { connection }));

function hostName(h) {
  return `h${String(h).padStart(3, '0')}.example.com`;
}

function payload(i, h) {
  const uid = `tbl_${String(i).padStart(9, '0')}`;
  return { big_table_uid: uid, input_url: `https://${hostName(h)}/${uid}/`.padEnd(100, 'x') };
}

async function add() {
  const jobs = queues.map(() => []);
  for (let i = 0; i < total; i += 1) {
    const h = Math.floor((i * hosts) / total);
    jobs[h].push({ name: 'refresh', data: payload(i, h), opts: forget });
  }
  for (const [h, queue] of queues.entries()) {
    for (let first = 0; first < jobs[h].length; first += 500) {
      await queue.addBulk(jobs[h].slice(first, first + 500));
    }
  }
}

async function doAll() {
  const running = queues.map(() => 0);
  const seen = { took: 0, others: 0, most: 0 };
  let began;
  let done = 0;
  await new Promise((resolve, reject) => {
    queues.forEach((queue, h) => {
      const worker = new Worker(queue.name, async (job) => {
        began ??= performance.now();
        running[h] += 1;
        seen.most = Math.max(seen.most, running[h]);
        await new Promise((over) => setTimeout(over, milliseconds * (h === 0 && slow === 'true' ? 4 : 1)));
        running[h] -= 1;
        seen.took = performance.now() - began;
        if (h !== 0) {
          seen.others = seen.took;
        }
        await queue.add('refresh', job.data, { ...forget, delay: 3600 * 1000 });
      }, { connection, concurrency: atATime });
      worker.on('completed', () => {
        done += 1;
        if (done === total) {
          resolve();
        }
      });
      worker.on('failed', (_, error) => reject(error));
    });
  });
  console.log(JSON.stringify(seen));
}

await (verb === 'add' ? add() : doAll());
process.exit(0);
