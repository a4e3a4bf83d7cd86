package dashboard

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/hint"
	"github.com/refreshd/refreshd/internal/testkit/check"
)

func TestARefusalNamesButtonsAndPagesThatThereAre(t *testing.T) {
	var html strings.Builder
	for _, name := range check.Got(fs.Glob(templateFiles, "*.html"))(t) {
		html.Write(check.Got(fs.ReadFile(templateFiles, name))(t))
	}
	for _, page := range pages {
		html.WriteString(">" + page.title + "<")
	}
	named := regexp.MustCompile(`"([A-Z][^"]*)"`)
	for r := range hint.Hints {
		for _, name := range named.FindAllStringSubmatch(hint.Text(r, hint.Dashboard, "a"), -1) {
			failIf(t, !strings.Contains(html.String(), ">"+name[1]+"<"), "expected a button or a page %q, found none", name[1])
		}
	}
}
