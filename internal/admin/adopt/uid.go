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

// nameAll gives each job a uid, with a digest where its name alone says less than what it is the same as. Only another job that is the same counts: the
// second one has its times behind, and its zone if that is not the usual one.
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
		j.uid += "@" + timesName(j.rule)
		if j.zone != zone {
			j.uid += "." + j.zone
		}
		if seen[j.uid]++; seen[j.uid] > 1 { // twice the same, in all
			j.uid = fmt.Sprintf("%s~%d", j.uid, seen[j.uid])
		}
	}
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:3])
}

var short, anyDay = regexp.MustCompile(`^[\w.+/-]{1,40}$`), regexp.MustCompile(`(\._)+$`)

// timesName writes a cron expression with the letters of a uid: "0 6 * * 1-5" is 0.6._._.1-5, and "0 6 * * *" 0.6. Of a longer one, and of RRULE lines, it is a digest.
func timesName(rule string) string {
	name := strings.NewReplacer(" ", ".", "*", "_", ",", "+", "@", "").Replace(rule)
	if !short.MatchString(name) {
		return digest(rule)
	}
	return anyDay.ReplaceAllString(name, "")
}

var (
	ends      = regexp.MustCompile(`&&|\|\|?|;`)
	redirect  = regexp.MustCompile(`\d*[<>&].*$`)
	script    = regexp.MustCompile(`-\w*c\s+(?:"([^"]*)"|'([^']*)')`)             // of sh, su and flock
	quoted    = regexp.MustCompile(`"([^"\s;|]*)"|'([^'\s;|]*)'|"[^"]*"|'[^']*'`) // a word, or a text that is left out
	option    = regexp.MustCompile(`^-(\w|-[^=]+)$`)
	host      = regexp.MustCompile(`^.*://(?:[^/?#]*@)?([^/?#:]*).*$`)
	ignorable = regexp.MustCompile(`^\d+[smhd]?$`) // before a program: numbers of options
	// guards are no work, and wrappers only run another program.
	guards   = []string{"cd", "test", "[", "[[", "command", "export", "umask", "set", ".", "sleep", "echo", "if", "mkdir", "true", "ulimit", "!", "then"}
	wrappers = []string{"nice", "ionice", "flock", "timeout", "sudo", "env", "chronic", "exec", "time", "nohup", "setsid", "run-one", "then", "if", "!"}
)

// programName is what the first program of a command that works is called, with its first two words that are no options. No word is taken that may be
// a secret.
func programName(command string) string {
	guard := ""
	command = quoted.ReplaceAllString(script.ReplaceAllString(command, ";$1$2;"), "$1$2")
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

// significant leaves out options and the values behind them, words that may hold a password, of a URL all but its host, and before the program numbers,
// and programs that only run another one.
func significant(part string) (words []string) {
	lock, before := false, ""
	for _, text := range strings.Fields(part) {
		word := host.ReplaceAllString(strings.Trim(text, "\"'`"), "$1")
		begins, name := len(words) == 0, path.Base(word)
		value := !begins && option.MatchString(before) && !strings.Contains(text, "://") && (len(before) == 2 || !strings.HasPrefix(word, "/"))
		switch before = word; {
		case word == "" || word[0] == '-' || value || strings.ContainsAny(word, "@:=") || begins && ignorable.MatchString(word):
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
