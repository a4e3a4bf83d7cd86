#!/usr/bin/env bash
# timezones-ical-library 2.3.2 (npm, on Node.js 20), VTIMEZONE texts of the zone database for calendar files, read by ical.js 2.2.1.
#
# Behaviour: a zone that has given up summer time is written as one offset since 1970, the one after its last change. With its text of
# America/Vancouver (from zone data of 2026, where the clocks stay at -07:00 from November 2026 on) a meeting at 09:00 is at 16:00Z in January 2026 too.
# So newer zone data moves what is past: whoever makes the file anew gets other instants for a winter that was at -08:00. Europe/Moscow, Asia/Almaty and
# America/Sao_Paulo are written likewise.
# Expected: 17:00Z in January 2026, 16:00Z in July and in December 2026. Source: RFC 5545, 3.6.5: a VTIMEZONE gives each observance from its onset on, and
# several of one kind where the rules have changed (its example of New York since 1967); the values are those of tzdata 2026f.
set -euo pipefail
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund timezones-ical-library@2.3.2 ical.js@2.2.1 >/dev/null

cat >seen.mjs <<'JS'
import ICAL from 'ical.js';
import { tzlib_get_ical_block as zoneText } from 'timezones-ical-library';
for (const zone of ['America/Vancouver', 'Europe/Moscow', 'Europe/Berlin']) {
  const [text] = zoneText(zone);
  const calendar = ['BEGIN:VCALENDAR', 'VERSION:2.0', text.trim(), 'BEGIN:VEVENT', 'UID:1', `DTSTART;TZID=${zone}:20260105T090000`,
    'RRULE:FREQ=MONTHLY;COUNT=12', 'END:VEVENT', 'END:VCALENDAR'].join('\r\n');
  const root = new ICAL.Component(ICAL.parse(calendar));
  ICAL.TimezoneService.register(root.getFirstSubcomponent('vtimezone'));
  const months = new ICAL.Event(root.getFirstSubcomponent('vevent')).iterator();
  const starts = Array.from({ length: 12 }, () => months.next().toJSDate().toISOString().slice(0, 16));
  console.log(zone, (text.match(/^TZOFFSETTO/gm) || []).length, 'observances', starts[0], starts[6], starts[11]);
}
JS
node seen.mjs | tee seen.txt
diff seen.txt - <<'SEEN'
America/Vancouver 1 observances 2026-01-05T16:00 2026-07-05T16:00 2026-12-05T16:00
Europe/Moscow 1 observances 2026-01-05T06:00 2026-07-05T06:00 2026-12-05T06:00
Europe/Berlin 2 observances 2026-01-05T08:00 2026-07-05T07:00 2026-12-05T08:00
SEEN
