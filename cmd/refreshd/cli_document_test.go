package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var updateCLI = flag.Bool("update", false, "write docs/cli.md anew")

const cliPage = "../../docs/cli.md"

const cliHead = `# Command line

Every command and every flag, made from the program by ` + "`go test ./cmd/refreshd -run TestThePageOfTheCommandLine -update`" + `.
A flag can also be set by the environment variable beside it, and by a line of the ` + "`--config`" + ` file with its name: ` + "`max-queued: 500`" + `. A flag goes
before the environment, and that before the file. Exit codes: 0 done, 1 failed, 2 wrong usage; 3 something differs, of ` + "`apply --plan`, `import` and `shadow`" + `.
` + "`list`, `show` and `delete`" + ` are other names of ` + "`ls`, `get` and `rm`" + ` everywhere; of messages, ` + "`delete` is `drop`" + `.

`

type cliDocument struct{ strings.Builder }

func (d *cliDocument) line(format string, values ...any) { fmt.Fprintf(d, format+"\n", values...) }

func (d *cliDocument) all(root *cobra.Command) {
	d.WriteString(cliHead)
	var sections []string
	for _, g := range root.Groups() {
		sections = append(sections, g.ID)
	}
	root.InitDefaultCompletionCmd()
	inSection := func(section string) (found []*cobra.Command) {
		for _, command := range root.Commands() {
			if command.GroupID == section && command.Name() != "help" && !command.Hidden {
				found = append(found, command)
			}
		}
		order := func(c *cobra.Command) int {
			for _, g := range groups {
				if at := slices.IndexFunc(g.commands, func(build func(*app) *cobra.Command) bool { return build(new(app)).Name() == c.Name() }); at >= 0 {
					return at
				}
			}
			return 0
		}
		slices.SortStableFunc(found, func(a, b *cobra.Command) int { return cmp.Compare(order(a), order(b)) })
		return found
	}
	sections = append(sections, "")
	for _, section := range sections {
		d.line("* %s: %s", cmp.Or(section, "More"), strings.Join(links(inSection(section)), ", "))
	}
	d.line("\n## Settings of every command\n")
	d.flags(root.PersistentFlags())
	for _, section := range sections {
		d.line("\n## %s", cmp.Or(section, "More"))
		for _, command := range inSection(section) {
			d.command(command, "###")
		}
	}
}

func links(commands []*cobra.Command) (links []string) {
	for _, command := range commands {
		links = append(links, fmt.Sprintf("[%s](#%s)", command.Name(), strings.ReplaceAll(command.CommandPath(), " ", "-")))
	}
	return links
}

func (d *cliDocument) command(command *cobra.Command, level string) {
	d.line("\n%s %s", level, command.CommandPath())
	if short := strings.TrimSuffix(command.Short, ".") + "."; !strings.HasPrefix(command.Long, short) {
		d.line("\n%s", short)
	}
	if command.Long != "" && command.Name() != "completion" {
		d.line("\n%s", paragraphs(command.Long))
	}
	if command.Runnable() && command.HasParent() {
		d.line("\n```text\n%s\n```", command.UseLine())
	}
	if local := command.LocalNonPersistentFlags(); local.HasAvailableFlags() && command.Name() != "completion" {
		d.line("")
		d.flags(local)
	}
	for _, child := range command.Commands() {
		if command.Name() != "completion" && !child.Hidden {
			d.command(child, "####")
		}
	}
}

var fallbackOf = regexp.MustCompile(` \(default ([^()]*)\)$`)

var marks = regexp.MustCompile(`[<>|*]`)

// paragraphs keeps the text of a command from being taken for marks of the page.
func paragraphs(text string) string {
	return strings.TrimSpace(marks.ReplaceAllStringFunc(text, func(mark string) string { return `\` + mark }))
}

func (d *cliDocument) flags(flags *pflag.FlagSet) {
	d.line("| flag | environment | default | |\n|---|---|---|---|")
	flags.VisitAll(func(flag *pflag.Flag) {
		if flag.Name == "help" || flag.Hidden {
			return
		}
		name, usage := pflag.UnquoteUsage(flag)
		title := "--" + flag.Name
		if flag.Shorthand != "" {
			title = "-" + flag.Shorthand + ", " + title
		}
		if name != "" {
			title += " " + name
		}
		fallback := flag.DefValue
		if fallback == "false" || fallback == "[]" || fallback == "0" || fallback == "0s" {
			fallback = ""
		}
		if fallback != "" {
			fallback = "`" + fallback + "`"
		}
		if found := fallbackOf.FindStringSubmatch(usage); found != nil {
			usage, fallback = strings.TrimSuffix(usage, found[0]), found[1]
		}
		d.line("| `%s` | `%s` | %s | %s |", title, variable(flag.Name), fallback, paragraphs(usage))
	})
}

func TestThePageOfTheCommandLineIsWhatTheProgramSays(t *testing.T) {
	a := &app{stdout: os.Stdout, stderr: os.Stderr}
	var d cliDocument
	d.all(a.rootCommand())
	text := d.String()
	if *updateCLI {
		must(t, os.WriteFile(cliPage, []byte(text), 0o600))
	}
	page, err := os.ReadFile(cliPage)
	must(t, err)
	failIf(t, string(page) != text, "%s is not what the program says: go test ./cmd/refreshd -run TestThePageOfTheCommandLine -update", cliPage)
}
