package adopt

import (
	"regexp"
	"slices"
	"strings"
)

// bare is a command of the same length without what the shell reads as text: what is quoted, escaped or arithmetic is written as _, a comment as blanks.
func bare(command string) string {
	out := []byte(command)
	var open []byte // quotes and parentheses, the innermost last; a is one of arithmetic
	for i := 0; i < len(out); i++ {
		c, in := command[i], byte(0)
		if len(open) > 0 {
			in = open[len(open)-1]
		}
		isText := in == '"' || in == 'a' || in == '{'
		begins := func(text string) bool { return strings.HasPrefix(command[i:], text) }
		hide := func(bytes int) {
			for end := min(i+bytes, len(out)); i < end; i++ {
				out[i] = '_'
			}
			i--
		}
		switch {
		case c == '\\':
			hide(2)
		case c == '\'' && !isText:
			length := strings.IndexByte(command[i+1:], '\'') + 2
			if length == 1 { // it never ends
				length = len(command)
			}
			hide(length)
		case begins("$(("):
			open = append(open, 'a', 'a')
			hide(3)
		case begins("${"):
			open = append(open, '{')
			hide(2)
		case begins("$("):
			open = append(open, '(')
			i++
		case c == in && (c == '"' || c == '`'), c == ')' && (in == '(' || in == 'a'), c == '}' && in == '{':
			open = open[:len(open)-1]
			if isText {
				hide(1)
			}
		case c == '"', c == '`':
			open = append(open, c)
			if c == '"' {
				hide(1)
			}
		case c == '(' && in == 'a':
			open = append(open, 'a')
			hide(1)
		case isText:
			hide(1)
		case c == '(':
			open = append(open, c)
		case c == '#' && (i == 0 || strings.IndexByte(" \t;&|(", command[i-1]) >= 0):
			return string(out[:i]) + strings.Repeat(" ", len(out)-i)
		}
	}
	return string(out)
}

var (
	ampersand = regexp.MustCompile(`&&|[<>|;]&|&>|&`)
	// ofShell matches a script for a shell within a command, with the name of the program that runs it.
	ofShell = regexp.MustCompile(`(?:^|[\s/;&|(])((?:ba|z|da|k)?sh|su|runuser|flock)\s(?:[^'";|&]*\s)?-\w*c\s+(?:'([^']*)'|"((?:[^"\\]|\\.)*)")`)
	// likeBash are shells that read &> as a redirection, and know RANDOM.
	likeBash = []string{"bash", "zsh"}
	escaped  = strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\$`, "$", "\\`", "`")
)

// background returns what leaves a program in the background: &, &> where that is no redirection, or nothing.
func background(command string, isBash bool) string {
	for _, found := range ampersand.FindAllString(bare(command), -1) {
		if found == "&" || found == "&>" && !isBash {
			return found
		}
	}
	for _, found := range ofShell.FindAllStringSubmatch(command, -1) {
		if inner := background(found[2]+escaped.Replace(found[3]), slices.Contains(likeBash, found[1])); inner != "" {
			return inner
		}
	}
	return ""
}

// toFile matches a redirection of bash, with the name of its file.
var toFile = regexp.MustCompile("&(>>?)[ \t]*([^ \t;&|<>()`$]+)([ \t;&|<>)]|$)")

// takeRedirections writes &> of bash as sh reads it. A file whose name a shell has to make stays as it is.
func (j *job) takeRedirections(command string) string {
	for {
		at := toFile.FindStringSubmatchIndex(bare(command))
		if at == nil {
			return command
		}
		command = strings.TrimRight(command[:at[0]], " \t") + " " + command[at[2]:at[3]] + " " + command[at[4]:at[5]] + " 2>&1" + command[at[5]:]
		j.note(Carried, "&> of bash is written as > FILE 2>&1, as sh reads it")
	}
}
