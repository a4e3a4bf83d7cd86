package main

import (
	"context"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/term"

	"github.com/refreshd/refreshd/model"
)

// setLogGlobals sets what zerolog keeps in globals: once in a program, before anything logs.
func setLogGlobals() {
	zerolog.TimeFieldFormat = model.TimeLayout // milliseconds, sortable
	zerolog.TimestampFunc = func() time.Time { return time.Now().UTC() }
	zerolog.DefaultContextLogger = new(zerolog.Nop())
}

// logLevels are checked, because zerolog would take "" and "7" as levels that say nothing at all.
var logLevels = []string{"trace", "debug", "info", "warn", "error"}

// newLogger writes JSON, or text when a person looks on. The level is one of logLevels.
func newLogger(to io.Writer, level string) zerolog.Logger {
	parsed, _ := zerolog.ParseLevel(level)
	if isTerminal(to) {
		to = zerolog.ConsoleWriter{Out: to, TimeFormat: "15:04:05.000"}
	}
	return zerolog.New(zerolog.SyncWriter(to)).Level(parsed).With().Timestamp().Logger()
}

func isTerminal(to any) bool {
	file, ok := to.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// redisLog is the logger for what go-redis has to say, which knows only one log in a program.
var redisLog atomic.Pointer[zerolog.Logger]

func logRedis(_ context.Context, message string) {
	if log := redisLog.Load(); log != nil {
		log.Debug().Str("text", message).Msg("redis client") // the caller tells every error anyway
	}
}
