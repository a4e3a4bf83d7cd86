'use strict';

// What the recipes use of node-postgres, which Debian's releases lack in part: transactions of psql, in place of a driver.

const { spawn } = require('node:child_process');
const { createInterface } = require('node:readline');

const literal = (value) => (value == null ? 'NULL' : `'${String(value).replaceAll("'", "''")}'`);

class Client {
  constructor() {
    this.psql = spawn('psql', ['-X', '-q', '-A', '-t', '-v', 'ON_ERROR_STOP=1', '-U', 'postgres'], { stdio: ['pipe', 'pipe', 'inherit'] });
    this.lines = createInterface(this.psql.stdout)[Symbol.asyncIterator]();
  }

  async query(text, values = []) {
    const filled = text.replace(/\$(\d+)/g, (_, n) => literal(values[n - 1]));
    const asked = /^SELECT|RETURNING/.test(text) ? `WITH t AS (${filled}) SELECT json_agg(t)::text FROM t` : filled;
    this.psql.stdin.write(`${asked};\n\\echo .\n`);
    let answer = '';
    for (let line; (line = await this.lines.next()).value !== '.';) {
      if (line.done) throw new Error(`psql has ended: ${filled}`);
      answer += line.value;
    }
    return { rows: answer ? JSON.parse(answer) : [] };
  }

  release() { this.psql.stdin.end(); }
}

class Pool {
  async connect() { return new Client(); }

  async query(text, values) {
    const client = new Client();
    return client.query(text, values).finally(() => client.release());
  }

  async end() {}
}

module.exports = { Pool };
