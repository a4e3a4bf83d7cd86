#!/usr/bin/env bash
# simple-rrule 1.8.1 (npm, on Node.js 20), an RRULE engine without dependencies.
#
# Behaviour: a day that a month lacks is moved, not left out, and in two directions. FREQ=MONTHLY from the 31st runs on 28 February and on 30 April; 29
# February of FREQ=YEARLY is 1 March in a year without it, and counts. UNTIL excludes the occurrence that falls exactly on it.
# Expected: 31 January, 31 March, 31 May, 31 July; 29 February of 2028 as the first; an occurrence on 7 January. Source: RFC 5545, 3.3.10: recurrence
# instances with an invalid date "MUST be ignored and MUST NOT be counted as part of the recurrence set", and UNTIL bounds a rule "in an inclusive manner".
# php-rrule, rrule-go, rrule, rrule-temporal, ical.js and libical leave such days out.
set -euo pipefail
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund simple-rrule@1.8.1 >/dev/null

cat >seen.js <<'JS'
const { expandRRuleFromString } = require('simple-rrule');
for (const rule of [
  'DTSTART:20260131T090000Z\nRRULE:FREQ=MONTHLY;INTERVAL=1;COUNT=4',
  'DTSTART:20260101T090000Z\nRRULE:FREQ=YEARLY;INTERVAL=1;BYMONTH=2;BYMONTHDAY=29;COUNT=3',
  'DTSTART:20260105T060000Z\nRRULE:FREQ=DAILY;INTERVAL=1;UNTIL=20260107T060000Z',
]) {
  const { events } = expandRRuleFromString(rule, new Date('2026-01-01'), new Date('2033-01-01'));
  console.log(rule.split('RRULE:')[1], events.map((event) => event.date.toISOString().slice(0, 10)).join(' '));
}
JS
node seen.js | tee seen.txt
diff seen.txt - <<'SEEN'
FREQ=MONTHLY;INTERVAL=1;COUNT=4 2026-01-31 2026-02-28 2026-03-31 2026-04-30
FREQ=YEARLY;INTERVAL=1;BYMONTH=2;BYMONTHDAY=29;COUNT=3 2026-03-01 2027-03-01 2028-02-29
FREQ=DAILY;INTERVAL=1;UNTIL=20260107T060000Z 2026-01-05 2026-01-06
SEEN
