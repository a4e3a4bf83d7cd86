package words

import "testing"

func TestAMistypedWordIsNearToTheOneThatWasMeantOrToNone(t *testing.T) {
	known := []string{"max-queued", "queue", "quiet", "redis", "concurrency", "fetch"}
	for mistyped, want := range map[string]string{
		"max-queue": "max-queued", "quue": "queue", "redsi": "", "rediss": "redis", "conc": "concurrency", "fast": "", "x": "", "": "", "qu": "",
	} {
		if got := NearestWord(mistyped, known); got != want {
			t.Errorf("%q: want %q, got %q", mistyped, want, got)
		}
	}
}
