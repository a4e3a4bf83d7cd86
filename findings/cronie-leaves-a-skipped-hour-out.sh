#!/usr/bin/env bash
# cronie 1.7.2 (Debian 13, cronie 1.7.2-4), under a moved clock (libfaketime 0.9.10), in Europe/Berlin. Needs root (for chroot), and apt-get of Debian with
# the keys of its archive. It takes about three minutes.
#
# Behaviour: a minute or an hour that begins with * is left to the clock, however seldom the job runs, and no other, however often it runs. "30 */2 * * *"
# runs at neither 02:30 nor 03:00 when 02:30 is skipped, and twice when 02:30 comes twice; so does "*/30 2 * * *". The same times, written as 0-23/2 and
# 0,30, run as soon as the gap is over (two of them at once), and once. "30 5,* * * *", each hour, runs at 03:00 and at 03:30 and leaves the second 02:30
# out, "30 *,5 * * *" does not.
# Expected: */2 as 0-23/2, */30 as 0,30, and 5,* as *,5. Source: cronie's cron(8), "Local time changes of less than three hours … are handled in a special
# way. This only applies to jobs that run at a specific time and jobs that run with a granularity greater than one hour. Jobs that run more frequently are
# scheduled normally. … jobs that would have run in the interval that has been skipped will be run immediately … running the same job twice is avoided".
# (Its crontab(5) says of all jobs that times which are skipped "will never match".) Debian's cron 3.0pl1 does the same, but its page says so of all that
# have a "'*' in the hour or minute specifier", which 5,* has too.
set -euo pipefail
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"

# The packages of Debian 13, from the mirror of this machine.
mkdir -p apt/lists/partial apt/cache/archives/partial root
{ cat /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2>/dev/null || true; } | grep -Eom1 '[a-z+]+://[^ ]*/debian/?( |$)' >mirror
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $(cat mirror) trixie main" >apt/sources.list
apt() {
  apt-get -qq -o Dir::Etc::SourceList="$directory/apt/sources.list" -o Dir::Etc::SourceParts=- -o Dir::State::Lists="$directory/apt/lists" \
    -o Dir::Cache="$directory/apt/cache" -o APT::Sandbox::User=root -o Acquire::Languages=none "$@"
}
apt update
apt download cronie=1.7.2-4 libfaketime libc6 libpam0g libpam-modules libselinux1 libaudit1 libpcre2-8-0 libcap-ng0 dash coreutils tzdata 2>&1
for package in *.deb; do dpkg -x "$package" root; done
for link in bin sbin lib lib64; do [ -e "root/$link" ] || ln -s "usr/$link" "root/$link"; done
mkdir -p root/{tmp,dev,run,var/run,var/spool/cron/crontabs,etc/pam.d}
: >root/dev/null
ln -sf dash root/usr/bin/sh
echo 'root:x:0:0:root:/:/bin/sh' >root/etc/passwd
echo 'root:x:0:' >root/etc/group
echo 'root:*:19000::::::' >root/etc/shadow
printf 'auth sufficient pam_permit.so\naccount sufficient pam_permit.so\nsession sufficient pam_permit.so\n' | tee root/etc/pam.d/{cronie,crond,other} >/dev/null
while read -r minute hour; do
  echo "$minute $hour * * * date '+\\%s.\\%N $minute $hour' >>/log"
done >root/var/spool/cron/crontabs/root <<'TIMES'
30 */2
30 0-23/2
*/30 2
0,30 2
30 *,5
30 5,*
TIMES
chmod 600 root/var/spool/cron/crontabs/root

# Each real second is two minutes of the daemon. Its jobs write down real time.
run() {
  timeout 120 chroot "$1" env -i TZ=Europe/Berlin PATH=/usr/sbin:/usr/bin LD_PRELOAD=/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1 \
    FAKETIME="@$1 00:10:10 x120" crond -n >"$1.out" 2>&1 || true
}
cp -a root 2026-03-29
cp -a root 2026-10-25
begun=$(date +%s.%N)
run 2026-03-29 &
run 2026-10-25 &
wait
for day in 2026-03-29 2026-10-25; do
  start=$(TZ=Europe/Berlin date -d "$day 00:10:10" +%s)
  echo "$day"
  awk -v begun="$begun" -v start="$start" '{ printf "%d %s %s\n", start + ($1 - begun) * 120, $2, $3 }' "$day/log" |
    while read -r at minute hour; do
      echo "$minute $hour: $(TZ=Europe/Berlin date -d "@$((at / 300 * 300))" +%H:%M)"
    done | awk -F': ' '{ runs[$1] = runs[$1] " " $2 } END { for (job in runs) print job ":" runs[job] }' | LC_ALL=C sort
done | tee seen.txt
diff seen.txt - <<'SEEN'
2026-03-29
0,30 2: 03:00 03:00
30 *,5: 00:30 01:30 03:30 04:30
30 */2: 00:30 04:30
30 0-23/2: 00:30 03:00 04:30
30 5,*: 00:30 01:30 03:00 03:30 04:30
2026-10-25
*/30 2: 02:00 02:30 02:00 02:30
0,30 2: 02:00 02:30
30 *,5: 00:30 01:30 02:30 02:30
30 */2: 00:30 02:30 02:30
30 0-23/2: 00:30 02:30
30 5,*: 00:30 01:30 02:30
SEEN
