#!/usr/bin/env bash
# human-interval 2.0.1 (npm; with numbered 1.1.0, on Node.js 20), by which the job scheduler agenda 6.2.6 reads the interval of a repeated job.
#
# Behaviour: words that it does not know count as the number 0, words behind a number are dropped, and neither is an error. "an hour", "half an hour" and
# "every 2 hours" are intervals of 0, although "hour" alone is one hour. "one and a half hours" is one hour. "ten thousand seconds" is 10 seconds.
# agenda takes a job with such an interval, and computes a next run that is the last run itself.
# Expected: an hour, half an hour, two hours, ninety minutes, 10,000 seconds, or a refusal (NaN), as for "2h". Source: its README, "Human Interval
# understands … 'minute', 'one minute', '1.5 minutes'" and "Supports numbers being written out in English words"; agenda refuses what is NaN.
set -euo pipefail
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund human-interval@2.0.1 numbered@1.1.0 agenda@6.2.6 >/dev/null

cat >seen.mjs <<'JS'
import seconds from 'human-interval';
import { computeFromInterval } from './node_modules/agenda/dist/utils/nextRunAt.js';
for (const text of ['hour', 'an hour', 'half an hour', 'every 2 hours', 'one and a half hours', 'ten thousand seconds', '2h']) {
  console.log(`${text}: ${seconds(text) / 1000}`);
}
const lastRunAt = new Date('2026-12-01T12:00:00Z');
const next = computeFromInterval({ name: 'feed', repeatInterval: 'every 2 hours', lastRunAt });
console.log(`agenda, every 2 hours after ${lastRunAt.toISOString()}: ${next.toISOString()}`);
JS
node seen.mjs | tee seen.txt
diff seen.txt - <<'SEEN'
hour: 3600
an hour: 0
half an hour: 0
every 2 hours: 0
one and a half hours: 3600
ten thousand seconds: 10
2h: NaN
agenda, every 2 hours after 2026-12-01T12:00:00.000Z: 2026-12-01T12:00:00.000Z
SEEN
