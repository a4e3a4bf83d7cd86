package document

import (
	"testing"
)

func TestWhatAPasteLeavesAroundAnAddressIsCut(t *testing.T) {
	const want = "https://h/a?b=c"
	for _, text := range []string{
		want, " " + want + "\r\n", "\t" + want + "\u00a0", "\ufeff" + want, "\u200b" + want + "\u200b\u2060", "<" + want + ">", `"` + want + `"`, "'" + want + "'",
		"“" + want + "”", "„" + want + "“", "«\u00a0" + want + "\u00a0»", "`" + want + "`", " <\n\"" + want + "\"> ", want + `\n`, want + `\r\n`, want + "\x00", "‘ '" + want + "' ’",
	} {
		if got := TrimAddress(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestWhatMayBePartOfAnAddressStays(t *testing.T) {
	for _, text := range []string{"https://h/a'", "https://h/'a'", "https://h/(a)", "https://h/a.", "https://h/a,", "https://h/a b", "https://h/a%20", ""} {
		if got := TrimAddress(text); got != text {
			t.Errorf("%q: got %q, want it as it is", text, got)
		}
	}
}
