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
			digest := sha256.Sum256([]byte(j.same))
			j.uid += "-" + hex.EncodeToString(digest[:3])
		}
		if kinds[j.name][j.same] > 1 {
			j.uid += "@" + timesName(j.rule)
		}
		if times[j.uid]++; times[j.uid] > 1 { // twice the same, in all
			j.uid = fmt.Sprintf("%s~%d", j.uid, times[j.uid])
		}
	}
}

// timesName writes a cron expression with the letters of a uid: "0 6 * * 1-5" is 0.6._._.1-5, and "0 6 * * *" 0.6.
func timesName(rule string) string {
	fields := strings.NewReplacer(" ", ".", "*", "_", ",", "+", "@", "").Replace(rule)
	for strings.HasSuffix(fields, "._") {
		fields = strings.TrimSuffix(fields, "._")
	}
	return slug(fields, `[^\w.+/-]+`)
}

var (
	ends     = regexp.MustCompile(`&&|\|\|?|;`)
	redirect = regexp.MustCompile(`\d*[<>&].*$`)
	guards   = []string{"cd", "test", "[", "[[", "command", "export", "umask", "set", ".", "source", "sleep", "echo", "printf", "if", "then", "mkdir", "true", "ulimit", "!"}
	wrappers = map[string]string{ // to their options that take the next word, and ! if the first word behind is their own
		"nice": "-n", "ionice": "-c -n -p", "flock": "-w -E !", "timeout": "-k -s !", "sudo": "-u -g", "env": "-u", "chronic": "", "exec": "",
		"time": "", "nohup": "", "setsid": "", "cronic": "", "chrt": "!", "run-one": "", "eval": "", "then": "", "systemd-cat": "-t -p",
	}
	variableSet = regexp.MustCompile(`^\w+=`)
)

// programName is what the first real program of a command is called, with its first two words that are no options.
func programName(command string) string {
	name := ""
	for _, part := range ends.Split(command, -1) {
		words := significant(redirect.ReplaceAllString(strings.Trim(part, " \t(){}"), ""))
		if len(words) > 0 && (name == "" || !slices.Contains(guards, words[0])) {
			for i, word := range words {
				words[i] = path.Base(strings.Trim(word, `"'`+"`"))
			}
			name = slug(strings.ToLower(strings.Join(words[:min(3, len(words))], "-")), `[^a-z0-9_.]+`)
			if !slices.Contains(guards, words[0]) && name != "" {
				return name
			}
		}
	}
	if name == "" {
		return "job"
	}
	return name
}

// significant leaves out variables, options, and programs that only run another one.
func significant(part string) (words []string) {
	skip := 0
	wrapper := true
	options, own := "", false
	for _, word := range strings.Fields(part) {
		switch spec, wraps := wrappers[path.Base(word)]; {
		case skip > 0:
			skip--
		case wrapper && wraps:
			options, own = strings.TrimSuffix(spec, "!"), strings.HasSuffix(spec, "!")
		case word[0] == '-' && wrapper && options != "" && slices.Contains(strings.Fields(options), word):
			skip = 1
		case word[0] == '-' || wrapper && variableSet.MatchString(word):
		case wrapper && own:
			own = false
		default:
			words, wrapper = append(words, word), false
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
