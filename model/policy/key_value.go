package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/netip"
	"net/url"
	"strings"
)

// keyCharacters are those that a value of a key may have.
const keyCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:/@+-"

const (
	maxKeyValue  = 100 // bytes of a value that stands in a key as it is
	maxKeyBegins = 40  // bytes of the beginning of any other
)

// keyValue makes a value fit for a part of a Redis key. One with other characters, or a longer one, is its allowed beginning, `~` and
// 12 hex digits of its SHA-256: no plain value has a `~`, so that both never meet.
func keyValue(value string) string {
	allowed := len(value) - len(strings.TrimLeft(value, keyCharacters))
	if allowed == len(value) && len(value) <= maxKeyValue {
		return value
	}
	sum := sha256.Sum256([]byte(value))
	return value[:min(allowed, maxKeyBegins)] + "~" + hex.EncodeToString(sum[:6])
}

// hostOf is the host of an absolute URL in lower case: without user, port and the dot of the root, and an IP address in its shortest
// form; empty: there is none. Names in other scripts and in punycode are not the same host here.
func hostOf(text string) string {
	if text == "" {
		return ""
	}
	parsed, err := url.Parse(strings.TrimSpace(text))
	if err != nil {
		return ""
	}
	host := strings.TrimSuffix(parsed.Hostname(), ".")
	if address, err := netip.ParseAddr(host); err == nil {
		return address.Unmap().String()
	}
	return strings.ToLower(host)
}

// scalarField is a text or number at the top of a JSON object; empty: there is none of that name. It looks only as far as it must, and
// takes no memory for most texts.
func scalarField(object, name string) string {
	raw := rawField(object, name)
	switch {
	case raw == "":
		return ""
	case raw[0] == '-' || '0' <= raw[0] && raw[0] <= '9':
		return raw
	case raw[0] != '"':
		return ""
	case strings.IndexByte(raw, '\\') < 0:
		return raw[1 : len(raw)-1]
	}
	text := ""
	if json.Unmarshal([]byte(raw), &text) != nil {
		return ""
	}
	return text
}

const jsonBlanks = " \t\r\n"

// rawField is the JSON of a field at the top of an object; empty: there is none. The name has no character that JSON escapes.
func rawField(object, name string) string {
	rest := strings.TrimPrefix(strings.TrimLeft(object, jsonBlanks), "{")
	for {
		key, after := cutJSON(strings.TrimLeft(rest, jsonBlanks+","))
		if key == "" || key[0] != '"' {
			return ""
		}
		value, after := cutJSON(strings.TrimLeft(after, jsonBlanks+":"))
		if value == "" {
			return ""
		}
		if key[1:len(key)-1] == name {
			return value
		}
		rest = after
	}
}

// cutJSON cuts the first value off a JSON text; empty: there is none.
func cutJSON(text string) (value, rest string) {
	end, depth := 0, 0
	for end < len(text) {
		switch text[end] {
		case '"':
			length := quotedLength(text[end:])
			if length == 0 {
				return "", ""
			}
			end += length - 1
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		default:
			if depth == 0 {
				end += len(text[end:]) - len(strings.TrimLeft(text[end:], "0123456789+-.Eaeflnrstu")) // a number, true, false or null
				return text[:end], text[end:]
			}
		}
		if end++; depth <= 0 {
			break
		}
	}
	if depth != 0 {
		return "", ""
	}
	return text[:end], text[end:]
}

// quotedLength is the length of the quoted text that a text begins with; 0: it does not end.
func quotedLength(text string) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return 0
}
