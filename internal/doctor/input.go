package doctor

import (
	"context"
	"fmt"

	"github.com/refreshd/refreshd/model/document"

	"github.com/refreshd/refreshd/scripts"
)

// inputPart is how many entries of the input list are read at once.
const inputPart = 200

// input checks that what waits for workers is still wanted.
func (e *examination) input(ctx context.Context) error {
	if !e.readable(e.store.Keys.Input()) {
		return nil
	}
	for from := int64(0); ; {
		entries, err := e.store.InputPart(ctx, from, inputPart)
		if err != nil || len(entries) == 0 {
			return err
		}
		e.look(len(entries))
		dropped, err := e.inputEntries(ctx, entries, from)
		if err != nil {
			return err
		}
		from += int64(len(entries) - dropped)
	}
}

// inputEntries checks a part of the list and returns how many entries of it were dropped.
func (e *examination) inputEntries(ctx context.Context, entries []scripts.InputEntry, from int64) (dropped int, err error) {
	uids := make([]string, len(entries))
	for i, entry := range entries {
		uids[i] = entry.UID
	}
	fences, _, err := e.store.Fences(ctx, uids)
	if err != nil {
		return 0, err
	}
	var stale []string
	for i, entry := range entries {
		switch {
		case entry.UID == "" || entry.AttemptUID == "":
			e.note(Finding{Warning, "input-unreadable", e.store.Keys.Input(), "JSON with big_table_uid and refresh_attempt_uid", document.Found(entry.Raw),
				byHand("LREM " + e.store.Keys.Input() + " 1 and the entry; workers drop it"), false})
		case fences[i].Err == nil && fences[i].AttemptUID != entry.AttemptUID:
			stale = append(stale, entry.Raw)
		}
	}
	if len(stale) == 0 {
		return 0, nil
	}
	return e.staleEntries(ctx, stale, from)
}

// staleEntries tells entries whose attempt was over when its model was read. An entry that was taken and answered between the two
// looks the same, but does not stand in the list any more: it is read again, with room for it to have moved.
func (e *examination) staleEntries(ctx context.Context, stale []string, from int64) (dropped int, err error) {
	again, err := e.store.InputPart(ctx, max(0, from-2*inputPart), 5*inputPart)
	if err != nil {
		return 0, err
	}
	stands := make(map[string]scripts.InputEntry)
	for _, entry := range again {
		stands[entry.Raw] = entry
	}
	for _, raw := range stale {
		entry, still := stands[raw]
		if !still {
			continue
		}
		f := Finding{Warning, "input-stale", entry.UID, "entries of running attempts only", "one of attempt " + document.Found(entry.AttemptUID) + ", which is over",
			"--repair removes it; workers drop it", false}
		err := e.attend(f, true, "mended: removed", func() error {
			n, err := e.store.DropInput(ctx, []string{raw})
			dropped += n
			return err
		})
		if err != nil {
			return dropped, fmt.Errorf("repair the input list: %w", err)
		}
	}
	return dropped, nil
}
