package adopt

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

var (
	ofHome      = regexp.MustCompile(`\$\{?(?:HOME|PWD)\b`)
	tilde       = regexp.MustCompile(`(?:^|[\s=:<>(])~(?:[/\s;&|)]|$)`)
	separators  = regexp.MustCompile("&&|[|][|&]?|[;(){}`]|(^|[^<>])&")
	toLoose     = regexp.MustCompile(`[<>]\s*[A-Za-z0-9.][^\s;&|<>()]*`)
	interpreter = regexp.MustCompile(`^(?:php|python|node|deno|ruby|perl|bash|sh|dash|zsh|Rscript|artisan|source|\.)[\d.]*$`)
	ofDirectory = regexp.MustCompile(`^(?:make|npm|npx|yarn|pnpm|rake|bundle|composer|docker-compose)$`)
	whole       = regexp.MustCompile(`(?:^|=|^-C)[/$_]`)
	redirected  = regexp.MustCompile(`\d*[<>]+[&|]?\s*[^\s;&|<>()]*`)
	ofValue     = regexp.MustCompile(`^-(?:[dIWX]|-define)$`)        // the next word is its value
	itself      = regexp.MustCompile(`^-(?:[cemrS]|-version|-eval)`) // the program is an option of the interpreter, or found by its name
)

// isLoose reports whether it matters to a command in which directory it starts, or what HOME is. Names without a slash it finds by PATH.
func isLoose(command string) bool {
	text := bare(command)
	if ofHome.MatchString(command) || tilde.MatchString(text) {
		return true
	}
	for done := 0; done < len(text); {
		end, next := len(text), len(text)
		if at := separators.FindStringIndex(text[done:]); at != nil {
			end, next = done+at[0], done+at[1]
		}
		part, raw := text[done:end], strings.TrimSpace(command[done:end])
		words := strings.Fields(before.ReplaceAllString(strings.TrimSpace(redirected.ReplaceAllString(part, " ")), ""))
		if len(words) > 0 && words[0] == "cd" {
			_, to, _ := strings.Cut(raw, " ")
			return !isFixed(strings.Trim(strings.TrimSpace(to), `"'`)) // what follows starts in that directory
		}
		if toLoose.MatchString(part) || len(words) > 0 && wordsAreLoose(words) {
			return true
		}
		done = next
	}
	return false
}

// isFixed reports whether a name means the same in each directory. What the shell makes of a variable or of quotes is not known.
func isFixed(name string) bool {
	return name != "" && strings.ContainsAny(name[:1], "/$_%`") || strings.Contains(name, "://")
}

func wordsAreLoose(words []string) bool {
	if strings.Contains(words[0], "/") && !isFixed(words[0]) {
		return true
	}
	fixed, first := false, ""
	for i, word := range words[1:] {
		if strings.HasPrefix(word, "./") || strings.HasPrefix(word, "../") {
			return true
		}
		fixed = fixed || whole.MatchString(word)
		if first == "" && (word[0] != '-' && !ofValue.MatchString(words[i]) || itself.MatchString(word)) {
			first = word
		}
	}
	program := path.Base(words[0])
	return interpreter.MatchString(program) && first != "" && first[0] != '-' && !isFixed(first) || ofDirectory.MatchString(program) && !fixed
}

// noteLoose says once where commands start.
func (c *crontab) noteLoose() {
	if len(c.loose) == 0 {
		return
	}
	which := "the command"
	if more := len(c.loose) - 1; more > 0 {
		which = fmt.Sprintf("this command, like %d below,", more)
	}
	c.note(c.loose[0], Differs, "%s depends on where it starts: under cron in the home directory of the user, with PATH=/usr/bin:/bin, "+
		"here in the directory of the worker, with its environment: start the worker in that directory, or write cd DIR && before the command", which)
}
