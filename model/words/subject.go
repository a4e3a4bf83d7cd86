package words

import (
	"slices"
	"strings"
)

// Nouns are what may be refreshed without a name of its own, in lower case.
var Nouns = strings.Split("big tables|big table|bigtables|bigtable|models|model|tables|table|banners|banner|thumbnails|thumbnail|thumbnailer service|service|"+
	"product feeds|product feed|feeds|feed|search indexes|search index|indexes|index|reports|report|pages|page|cache|catalog|data|datasets|dataset|"+
	"files|file|images|image|imports|import|exports|export|materialized views|materialized view|views|view|everything|it|them", "|")

var articles = strings.Fields("the a an this these that its my our all each every")

// NounPattern matches, as alternatives of a regular expression, one of the nouns with an article or without.
var NounPattern = `(?:(?:` + strings.Join(articles, "|") + `) )?(?:` + strings.Join(Nouns, "|") + `)`

// CutSubject cuts off an optional article with a noun, one of the names, or texts in quotes, also beside a noun. Without one of them it cuts nothing.
func CutSubject(sentence []string, names ...string) []string {
	rest, found := sentence, false
	if len(rest) > 1 && slices.Contains(articles, strings.ToLower(rest[0])) {
		rest = rest[1:]
	}
	quoted := func() {
		for len(rest) > 0 && strings.HasPrefix(rest[0], `"`) {
			rest, found = rest[1:], true
			if len(rest) > 1 && rest[0] == "and" && strings.HasPrefix(rest[1], `"`) {
				rest = rest[1:]
			}
		}
	}
	quoted()
	for _, noun := range slices.Concat(names, Nouns) {
		words := strings.Fields(noun)
		if len(words) > 0 && len(rest) >= len(words) && strings.EqualFold(strings.Trim(strings.Join(rest[:len(words)], " "), ",:"), noun) {
			rest, found = rest[len(words):], true
			break
		}
	}
	quoted()
	if !found {
		return sentence
	}
	return rest
}
