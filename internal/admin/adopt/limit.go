package adopt

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/document"
)

var (
	// limited matches a command that timeout(1) bounds as a whole, behind guards and programs that only run another one. What follows does not take long.
	limited = regexp.MustCompile(`^(?:(?:test|\[|command -v|cd)\s(?:[^;|&()` + "`" + `]|>&\d)*&&\s*)*` +
		`(?:(?:\S*/)?(?:nice|ionice|sudo|env|chronic|exec|nohup)(?:\s+-[ugnc]\s+[\w-]+|\s+-\S+)*\s+|(?:\S*/)?flock\s+-x?n\s+\S+\s+|\w+=\S*\s+)*` +
		`(?:\S*/)?timeout\s+((?:(?:-\w*[ks]|--kill-after|--signal)\s+[\w.+-]+\s+|-\S+\s+)*)(\d+\.?\d*|\.\d+)([smhd]?)\s` +
		`(?:[^;|&()` + "`" + `]|[<>]&|\$\(date[^()]*\))*(?:\|\|\s*(?:true|:|exit(?:\s+\d+)?)\s*)?$`)
	killAfter = regexp.MustCompile(`(?:^|\s)(?:-\w*k\s*|--kill-after[=\s]\s*)(?:(\d+\.?\d*|\.\d+)([smhd]?)\s)?`)
	lengthOf  = map[string]time.Duration{"": time.Second, "s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}
)

// laterThanOwn is how much longer the policy waits than the timeout of the command, so that this ends it first, and its exit code is seen.
const laterThanOwn = time.Minute

// takeTimeout makes the limit that a command sets itself that of the policy. Without a kill, or where 0 means none, this one is still the last.
func (j *job) takeTimeout(command string) {
	found := limited.FindStringSubmatch(bare(command))
	if found == nil {
		return
	}
	kill := append(killAfter.FindStringSubmatch(found[1]), "", "", "")
	own, grace := spanOf(found[2], found[3]), spanOf(kill[1], kill[2])
	if own == 0 || kill[0] != "" && kill[1] == "" || own+grace+laterThanOwn > document.MaxDuration {
		return
	}
	j.timeout = own + grace + laterThanOwn
	with := ""
	if grace > 0 {
		with = ", its -k of " + document.FormatDuration(grace)
	}
	j.note(Carried, "its own timeout of %s%s and a minute more are the timeout of the policy, so that its own ends it first", document.FormatDuration(own), with)
}

// spanOf reads a number with a unit of timeout(1), as whole seconds; no text and what is longer than ever: 0.
func spanOf(number, unit string) time.Duration {
	n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || n > document.MaxDuration.Seconds()/lengthOf[unit].Seconds() {
		return 0
	}
	return time.Duration(math.Ceil(n*lengthOf[unit].Seconds())) * time.Second
}
