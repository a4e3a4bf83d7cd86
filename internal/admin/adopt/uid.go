package adopt

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// nameAll gives each job a uid. It does not depend on the order of jobs that do different things: those with one name get a digest of what they do, and
// those that do the same their times.
func nameAll(jobs []*job) {
	kinds, times := make(map[string]map[string]int), make(map[string]int)
	for _, j := range jobs {
		if kinds[j.name] == nil {
			kinds[j.name] = make(map[string]int)
		}
		kinds[j.name][j.same]++
	}
	for _, j := range jobs {
		j.uid = j.name
		if len(kinds[j.name]) > 1 {
			j.uid += "-" + digest(j.same)
		}
		if kinds[j.name][j.same] > 1 {
			j.uid += "@" + timesName(j.rule)
		}
		if times[j.uid]++; times[j.uid] > 1 { // twice the same, in all
			j.uid = fmt.Sprintf("%s~%d", j.uid, times[j.uid])
		}
	}
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:3])
}

// timesName writes a cron expression with the letters of a uid: "0 6 * * 1-5" is 0.6._._.1-5, and "0 6 * * *" 0.6. Of RRULE lines it is a digest.
func timesName(rule string) string {
	if strings.Contains(rule, "=") {
		return digest(rule)
	}
	fields := strings.NewReplacer(" ", ".", "*", "_", ",", "+", "@", "").Replace(rule)
	for strings.HasSuffix(fields, "._") {
		fields = strings.TrimSuffix(fields, "._")
	}
	return slug(fields, `[^\w.+/-]+`)
}

var (
	ends      = regexp.MustCompile(`&&|\|\|?|;`)
	redirect  = regexp.MustCompile(`\d*[<>&].*$`)
	ignorable = regexp.MustCompile(`^(\w+=.*|\d+[smhd]?)$`) // before a program: variables, and numbers of options
	// guards are no work, and wrappers only run another program.
	guards   = []string{"cd", "test", "[", "[[", "command", "export", "umask", "set", ".", "sleep", "echo", "if", "mkdir", "true", "ulimit", "!", "then"}
	wrappers = []string{"nice", "ionice", "flock", "timeout", "sudo", "env", "chronic", "exec", "time", "nohup", "setsid", "run-one", "then", "if", "!"}
)

// programName is what the first program of a command that works is called, with its first two words that are no options.
func programName(command string) string {
	guard := ""
	for _, part := range ends.Split(command, -1) {
		words := significant(redirect.ReplaceAllString(strings.Trim(part, " \t(){}"), ""))
		name := slug(strings.ToLower(strings.Join(words[:min(3, len(words))], "-")), `[^a-z0-9_.]+`)
		if name != "" && !slices.Contains(guards, words[0]) {
			return name
		}
		guard = cmp.Or(guard, name)
	}
	return cmp.Or(guard, "job")
}

// significant leaves out options, and before the program variables, numbers, and programs that only run another one.
func significant(part string) (words []string) {
	lock := false
	for _, word := range strings.Fields(part) {
		name := path.Base(strings.Trim(word, "\"'`"))
		switch begins := len(words) == 0; {
		case word[0] == '-' || begins && ignorable.MatchString(word):
		case begins && slices.Contains(wrappers, name):
			lock = name == "flock"
		case lock:
			lock = false
		default:
			words = append(words, name)
		}
	}
	return words
}

const maxUID = 60 // bounds a name, in bytes

// slug writes what the pattern matches as -.
func slug(text, others string) string {
	text = regexp.MustCompile(others).ReplaceAllString(text, "-")
	return strings.Trim(text[:min(len(text), maxUID)], "-._")
}
