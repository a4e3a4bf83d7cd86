package handlers

import (
	"net/url"
	"slices"
	"strings"
)

// identityOf is the address of a feed without parameters that are new each time, such as signatures.
func identityOf(source *url.URL, ignore []string) *url.URL {
	kept := *source
	kept.RawQuery = strings.Join(slices.DeleteFunc(strings.Split(source.RawQuery, "&"), func(parameter string) bool {
		name, _, _ := strings.Cut(parameter, "=")
		return slices.Contains(ignore, name)
	}), "&")
	return &kept
}
