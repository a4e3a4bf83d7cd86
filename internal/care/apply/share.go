package apply

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/refreshd/refreshd/model/document"
)

// Share is how many models may go at a time: a number, or a percentage of what the owner has.
type Share struct {
	number  int
	percent float64
	isShare bool
}

// ParseShare reads "12" or "2.5%".
func ParseShare(text string) (Share, error) {
	if part, is := strings.CutSuffix(text, "%"); is {
		percent, err := strconv.ParseFloat(part, 64)
		if err == nil && percent >= 0 && percent <= 100 {
			return Share{percent: percent, isShare: true}, nil
		}
	} else if number, err := strconv.Atoi(text); err == nil && number >= 0 {
		return Share{number: number}, nil
	}
	return Share{}, document.Refuse("", "a number from 0, or a share from 0% to 100%", document.Found(text))
}

// Of is how many of so many that is; a part of one counts as one.
func (s Share) Of(all int) int {
	if !s.isShare {
		return s.number
	}
	return int(math.Ceil(float64(all) * s.percent / 100))
}

func (s Share) String() string {
	if !s.isShare {
		return strconv.Itoa(s.number)
	}
	return fmt.Sprintf("%g%%", s.percent)
}
