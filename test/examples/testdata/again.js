const { publish } = require(`${process.env.CLIENTS}/node/refreshd.js`);
const task = JSON.parse(process.argv[1]);

async function connect() {
  if (task.database === 'mariadb') return require('mysql2/promise').createConnection({ host: '127.0.0.1', port: task.port, user: 'root', database: 'test' });
  const client = new (require('pg').Client)({ host: '127.0.0.1', port: task.port, user: 'postgres', database: 'postgres' });
  await client.connect();
  return client;
}

/** Lets another transaction hold what the first statements ask for, and wait for what they hold. */
async function swallow(client) {
  const other = await connect();
  for (const text of task.held) await other.query(text);
  const last = task.swallowed.at(-1);
  for (const text of task.swallowed.slice(0, -1)) await client.query(text);
  const waiting = Promise.all(task.waits.map((text) => other.query(text)));
  await client.query(last).catch(() => {});
  await waiting;
  await other.end();
}

async function tell(client, fence, error, times, swallows = false) {
  let calls = 0;
  const told = await publish(client, 'm1', fence, async (connection) => {
    calls += 1;
    await connection.query(`INSERT INTO published VALUES (${fence})`);
    if (calls <= times) await connection.query(error);
    if (swallows) await swallow(connection);
  }).catch((caught) => (/swallowed/.test(caught.message) ? 'swallowed' : 'error'));
  console.log(fence, String(told), calls);
}

(async () => {
  const client = await connect();
  for (const text of task.tables) await client.query(text);
  for (const [number, error] of task.again.entries()) await tell(client, 10 + number, error, 1);
  await tell(client, 10, '', 0);
  await tell(client, 20, task.other, 1);
  await tell(client, 30, task.again[0], 99);
  await tell(client, 20, '', 0);
  await tell(client, 35, '', 0, true);
  await tell(client, 35, '', 0);
  await tell(client, 36, 'COMMIT', 1);
  const found = await client.query('SELECT count(*) AS n FROM published');
  console.log(Number((found.rows || found[0])[0].n), 'rows');
  const pool = task.database === 'mariadb' ? require('mysql2/promise').createPool({}) : new (require('pg').Pool)();
  await tell(pool, 40, '', 0);
  await client.query('BEGIN');
  await tell(client, 40, '', 0);
  await client.end();
})();
