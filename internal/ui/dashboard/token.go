package dashboard

import (
	"errors"
	"fmt"
	"strings"

	"github.com/refreshd/refreshd/internal/admin/acl"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/words"
)

// Token lets in whoever knows it.
type Token struct {
	Name     string // of who knows it, for journal and history; empty: see Config.Tokens
	Text     string // 16 bytes or more
	ReadOnly bool   // of a viewer, who may do no action
}

func validateTokens(tokens []Token) error {
	names, texts := map[string]bool{}, map[string]bool{}
	for _, token := range tokens {
		switch {
		case len(token.Text) < minToken:
			return fmt.Errorf("token: expected at least %d bytes, found %d", minToken, len(token.Text))
		case token.Name == "" || token.Name != document.Shorten(token.Name, model.MaxBy):
			return fmt.Errorf("token: expected a name of at most %d bytes, found %s", model.MaxBy, document.Found(token.Name))
		case names[token.Name] || texts[token.Text]:
			return errors.New("token: expected each name and each token once, found one again")
		}
		names[token.Name], texts[token.Text] = true, true
	}
	return nil
}

// ReadTokens reads a file with one token alone, or with lines ROLE NAME TOKEN. An error never repeats a token.
func ReadTokens(file, text string) (tokens []Token, err error) {
	if text = strings.TrimSpace(text); text == "" {
		return nil, fmt.Errorf("%s: expected a token, found nothing", file)
	}
	roles := map[string]bool{string(acl.Viewer): true, string(acl.Operator): false}
	if _, is := roles[strings.Fields(text)[0]]; !is && !strings.Contains(text, "\n") {
		return []Token{{Text: text}}, nil
	}
	for i, line := range strings.Split(text, "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		expected := fmt.Sprintf("%s:%d: expected ROLE NAME TOKEN", file, i+1)
		if len(fields) != 3 {
			return nil, fmt.Errorf("%s, found %s", expected, words.Count(len(fields), "word", "words"))
		}
		readOnly, is := roles[fields[0]]
		if !is {
			return nil, fmt.Errorf("%s with the role viewer or operator, found another", expected)
		}
		token := Token{Name: document.Shorten(fields[1], model.MaxBy), Text: fields[2], ReadOnly: readOnly}
		if err := validateTokens(append(tokens, token)); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, i+1, err)
		}
		tokens = append(tokens, token)
	}
	if len(tokens) == 0 {
		return nil, fmt.Errorf("%s: expected a token, found comments alone", file)
	}
	return tokens, nil
}
