package adopt

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// nameAll gives each job a uid, with a digest where its name alone says less than what it is the same as. Only another job that is the same counts: the
// second one has a digest of its times behind, and of its zone if that is not the usual one.
func nameAll(jobs []*job, zone string) {
	seen := make(map[string]int)
	for _, j := range jobs {
		j.uid = j.name
		if j.name != j.same {
			j.uid += "-" + digest(j.same)
		}
		if seen[j.uid]++; seen[j.uid] == 1 {
			continue
		}
		j.uid += "@" + digest(strings.TrimSuffix(j.rule+" "+j.zone, " "+zone))
		if seen[j.uid]++; seen[j.uid] > 1 { // twice the same, in all
			j.uid = fmt.Sprintf("%s~%d", j.uid, seen[j.uid])
		}
	}
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:3])
}

var (
	ends   = regexp.MustCompile(`&&|\|\|?|;`)
	script = regexp.MustCompile(`-\w*c\s+(?:"([^"]*)"|'([^']*)')`) // of sh, su and flock
	// before is what only runs another program, with its options, and variables.
	before = regexp.MustCompile(`^(?:(?:!|then|if|(?:\S*/)?(?:nice|ionice|timeout|sudo|env|chronic|exec|time|nohup|setsid|run-one))` +
		`(?:\s+-[ug]\s+\S+|\s+-\S+|\s+\d+[smhd]?)*\s+|(?:\S*/)?flock(?:\s+-\S+|\s+[\d.]+)*\s+[^\s;]+\s*|\w+=\S*\s+)+`)
	plain  = regexp.MustCompile(`^[\w./+-]+$`)
	guards = []string{"cd", "test", "[", "[[", "command", "export", "umask", "set", ".", "sleep", "echo", "if", "mkdir", "true", "ulimit", "fi", "else"}
)

// programName is what the first program of a command that works is called, with up to two words that are neither options nor their values. No word is
// taken that may be a secret.
func programName(command string) string {
	for _, part := range ends.Split(script.ReplaceAllString(command, ";$1$2;"), -1) {
		var words []string
		option := false
		for word := range strings.FieldsSeq(before.ReplaceAllString(strings.Trim(part, " \t(){}"), "")) {
			if words != nil && strings.ContainsAny(word, `<>"'#`) {
				break
			}
			value := option && word[0] != '/'
			if option = word[0] == '-'; words == nil || !option && !value && plain.MatchString(word) {
				words = append(words, path.Base(strings.Trim(word, `"'`)))
			}
		}
		name := slug(strings.ToLower(strings.Join(words[:min(3, len(words))], "-")), `[^a-z0-9_.]+`)
		if name != "" && !slices.Contains(guards, words[0]) {
			return name
		}
	}
	return "job"
}

const maxUID = 60 // bounds a name, in bytes

// slug writes what the pattern matches as -.
func slug(text, others string) string {
	text = regexp.MustCompile(others).ReplaceAllString(text, "-")
	return strings.Trim(text[:min(len(text), maxUID)], "-._")
}
