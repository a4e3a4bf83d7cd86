// node bullmq-load.mjs add|work HOST:PORT: adds the jobs of the plan on standard input, or does them and tells from when to when it did each.
// A job that was added before is added again for in an hour; if the plan says that they are asked for, work adds each at its time.
//
// Groups with a limit of their own are of the paid edition. Without them each host has a queue, and a worker of that concurrency: all hosts must
// be known ahead, each costs a connection, and a second process needs the global concurrency of each queue instead.
import { readFileSync } from 'node:fs';
import { Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';

const [verb, address] = process.argv.slice(2);
const plan = JSON.parse(readFileSync(0));
const [host, port] = address.split(':');
const connection = new Redis({ host, port: Number(port), maxRetriesPerRequest: null });
const forget = { removeOnComplete: true, removeOnFail: true };
const queues = new Map(plan.hosts.map((name) => [name, new Queue(name, { connection })]));

function now() {
  return performance.timeOrigin + performance.now();
}

function wait(milliseconds) {
  return milliseconds > 0 ? new Promise((over) => setTimeout(over, milliseconds)) : undefined;
}

async function add() {
  for (const [name, queue] of queues) {
    const jobs = [];
    plan.jobs.forEach((job, i) => {
      if (job.host === name) {
        jobs.push({ name: String(i), data: job.data, opts: forget });
      }
    });
    for (let first = 0; first < jobs.length; first += 500) {
      await queue.addBulk(jobs.slice(first, first + 500));
    }
  }
}

async function addEach(from) {
  for (const [i, job] of plan.jobs.entries()) {
    await wait(from + job.after - now());
    await queues.get(job.host).add(String(i), job.data, forget);
  }
}

async function work() {
  const attempts = [];
  const workers = [];
  let done = 0;
  const finished = new Promise((resolve, reject) => {
    for (const [name, queue] of queues) {
      const worker = new Worker(name, async (job) => {
        const began = now();
        await wait(plan.jobs[job.name].takes);
        attempts.push([Number(job.name), began, now()]);
        if (!plan.asked) {
          await queue.add(job.name, job.data, { ...forget, delay: 3600 * 1000 });
        }
      }, { connection, concurrency: plan.workers });
      worker.on('completed', () => {
        done += 1;
        if (done === plan.jobs.length) {
          resolve();
        }
      });
      worker.on('failed', (_, error) => reject(error));
      workers.push(worker);
    }
  });
  await Promise.all(workers.map((worker) => worker.waitUntilReady()));
  const from = now();
  if (plan.asked) {
    await addEach(from);
  }
  await finished;
  await new Promise((written) => process.stdout.write(JSON.stringify({ from, attempts }), written)); // a pipe takes it bit by bit
}

await (verb === 'add' ? add() : work());
process.exit(0);
