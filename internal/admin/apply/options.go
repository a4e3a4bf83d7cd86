// Package apply makes the models of an owner match a directory: it first plans what to create, change and delete, and then carries out
// exactly that plan.
package apply

import (
	"math"
	"strconv"
	"strings"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// OwnerLabel is the label that says whose a model is.
const OwnerLabel = "owner"

// Options say how a directory is applied.
type Options struct {
	Owner string
	// Prune deletes the owner's models that the directory lacks, unless they are more than MaxDelete: a number of models, such as 12, or a share of
	// the owner's models, such as 2.5%, rounded up.
	Prune     bool
	MaxDelete string
	// Adopt gives the owner those models of the directory that belong to others, or to nobody. Otherwise they are refused.
	Adopt bool
	// By is who wants it, for the journal; empty: nobody says.
	By string
}

// Validate refuses an owner that cannot be a label value, and a MaxDelete that is no number or share. An error is a *document.Error.
func (o Options) Validate() error {
	if err := model.ValidateLabel(OwnerLabel, o.Owner); err != nil {
		return document.Refuse("owner", "1-60 letters, digits or _.:@/+-", document.Found(o.Owner))
	}
	_, err := o.maxDeleted(0)
	return err
}

// maxDeleted is how many models may be deleted of so many that the owner has.
func (o Options) maxDeleted(owned int) (int, error) {
	if part, is := strings.CutSuffix(o.MaxDelete, "%"); is {
		percent, err := strconv.ParseFloat(part, 64)
		if err == nil && percent >= 0 && percent <= 100 {
			return int(math.Ceil(float64(owned) * percent / 100)), nil
		}
	} else if number, err := strconv.Atoi(o.MaxDelete); err == nil && number >= 0 {
		return number, nil
	}
	return 0, document.Refuse("max-delete", "a number from 0, or a share from 0% to 100%", document.Found(o.MaxDelete))
}
