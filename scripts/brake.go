package scripts

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model"
)

var measureBrake = load("measure-brake.lua")

// The fields of the hash <queue>:brake.
const (
	brakeOn      = "on"
	brakeShare   = "share"
	brakeWindow  = "window_ms"
	brakeMin     = "min"
	brakeEngaged = "engaged_at"
)

// brakeSettings are the fields that a decision depends on.
var brakeSettings = []string{brakeOn, brakeEngaged, brakeShare, brakeWindow, brakeMin}

// BrakeStatus is the brake of a queue and what it has counted within its window.
type BrakeStatus struct {
	model.Brake
	EngagedAt           string // RFC 3339; empty: it is not engaged
	Successes, Failures int64
	Incidents           int64 // how often it was engaged
}

// BrakeChange is what a measurement led to.
type BrakeChange string

// The changes of a brake.
const (
	BrakeUnchanged BrakeChange = ""
	BrakeEngaged   BrakeChange = "engaged"
	BrakeReleased  BrakeChange = "released"
)

// MeasureBrake engages or releases the brake by what was counted within its window, and records an incident in journal and outbox.
func (s *Store) MeasureBrake(ctx context.Context, now time.Time) (BrakeChange, error) {
	keys := []string{s.Keys.Brake(), s.Keys.Stats(), s.Keys.Journal(), s.Keys.Outbox()}
	reply, err := runValues(ctx, s.clients.Write, measureBrake, 3, keys, millis(now), model.FormatTime(now), s.config.JournalCap)
	if err != nil {
		return BrakeUnchanged, fmt.Errorf("measure the brake: %w", err)
	}
	return BrakeChange(text(reply[0])), nil
}

// Brake reads the brake of the queue.
func (s *Store) Brake(ctx context.Context) (BrakeStatus, error) {
	hash, err := s.clients.Read.HGetAll(ctx, s.Keys.Brake()).Result()
	if err != nil {
		return BrakeStatus{}, fmt.Errorf("read the brake: %w", err)
	}
	status := BrakeStatus{Brake: decodeBrake(hash), EngagedAt: hash[brakeEngaged], Incidents: whole(hash["engaged"])}
	counters, err := s.clients.Read.HGetAll(ctx, s.Keys.Stats()).Result()
	if err != nil {
		return BrakeStatus{}, fmt.Errorf("read counters: %w", err)
	}
	for field, value := range counters {
		if strings.HasPrefix(field, model.BrakeSucceeded) {
			status.Successes += whole(value)
		}
		if strings.HasPrefix(field, model.BrakeFailed) {
			status.Failures += whole(value)
		}
	}
	return status, nil
}

// decodeBrake reads the settings of a brake; what is absent or cannot be read is the default.
func decodeBrake(hash map[string]string) model.Brake {
	brake := model.DefaultBrake()
	brake.On = hash[brakeOn] == "1"
	brake.Engaged = brake.On && hash[brakeEngaged] != ""
	read := brake
	read.Share, _ = strconv.ParseFloat(hash[brakeShare], 64)
	read.Window = time.Duration(whole(hash[brakeWindow])) * time.Millisecond
	read.Min = int(whole(hash[brakeMin]))
	if read.Validate() != nil {
		return brake
	}
	return read
}

func whole(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64) // what is no number counts for nothing
	return n
}

// SetBrake tunes the brake and switches it on or off. Switched off, it is released.
func (s *Store) SetBrake(ctx context.Context, brake model.Brake) error {
	if err := brake.Validate(); err != nil {
		return err
	}
	if !brake.On {
		if err := s.ReleaseBrake(ctx); err != nil {
			return err
		}
	}
	share := strconv.FormatFloat(brake.Share, 'f', -1, 64)
	err := s.clients.Write.HSet(ctx, s.Keys.Brake(), brakeOn, brake.On, brakeShare, share,
		brakeWindow, brake.Window.Milliseconds(), brakeMin, brake.Min).Err()
	return wrap(err, "set the brake")
}

// ReleaseBrake releases the brake by hand: what it has counted is forgotten, so that it is not engaged again by the same failures.
func (s *Store) ReleaseBrake(ctx context.Context) error {
	fields, err := s.clients.Write.HKeys(ctx, s.Keys.Stats()).Result()
	if err != nil {
		return fmt.Errorf("read counters: %w", err)
	}
	pipe := s.clients.Write.TxPipeline()
	for _, field := range fields {
		if strings.HasPrefix(field, model.BrakePrefix) {
			pipe.HDel(ctx, s.Keys.Stats(), field)
		}
	}
	pipe.HDel(ctx, s.Keys.Brake(), brakeEngaged)
	_, err = pipe.Exec(ctx)
	return wrap(err, "release the brake")
}
