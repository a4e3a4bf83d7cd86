#!/usr/bin/env bash
# bullmq 6.7.0 with its cron-parser 5.10.3 (npm, on Node.js 20). Needs no Redis: what a job scheduler asks for its next run is asked a thousand times.
#
# Behaviour: a job scheduler with the pattern "H 3 * * *" runs twice or more on many days. Each run reads the pattern anew, without a hashSeed, so that H is
# another minute each time: after a run at 03:04 the next one may be at 03:40 of the same day. About half of all runs come on a day that had one before.
# Expected: one run a day, at one minute that is picked once, or a refusal, as of bullmq 5.81.5 (its cron-parser 4.9.0 has no H). Source: the README of
# cron-parser, "`H * * * *` (every n minute where n is randomly picked within [0, 59])"; a single iterator of cron-parser keeps its minute.
set -euo pipefail
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts bullmq@6.7.0 cron-parser@5.10.3 >/dev/null

cat >seen.cjs <<'JS'
const { defaultRepeatStrategy } = require('./node_modules/bullmq/dist/cjs/classes/job-scheduler.js');
const { CronExpressionParser } = require('cron-parser');
const begin = new Date('2026-12-01T00:00:00Z');
const most = (runs) => {
  const days = {};
  for (const run of runs) days[run.slice(0, 10)] = (days[run.slice(0, 10)] ?? 0) + 1;
  return `of 1000 runs, on days with several ${runs.filter((run) => days[run.slice(0, 10)] > 1).length > 300 ? 'more than 300' : 'few or none'}`;
};
(async () => {
  for (const pattern of ['H 3 * * *', '7 3 * * *']) {
    const runs = [];
    for (let at = begin.getTime(); runs.length < 1000; runs.push(new Date(at).toISOString())) {
      at = await defaultRepeatStrategy(at, { pattern, tz: 'UTC' });
    }
    console.log(`bullmq, ${pattern}: ${most(runs)}`);
  }
  const interval = CronExpressionParser.parse('H 3 * * *', { currentDate: begin, tz: 'UTC' });
  console.log(`cron-parser, H 3 * * *: ${most(Array.from({ length: 1000 }, () => interval.next().toISOString()))}`);
})();
JS
node seen.cjs | tee seen.txt
diff seen.txt - <<'SEEN'
bullmq, H 3 * * *: of 1000 runs, on days with several more than 300
bullmq, 7 3 * * *: of 1000 runs, on days with several few or none
cron-parser, H 3 * * *: of 1000 runs, on days with several few or none
SEEN
