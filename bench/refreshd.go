package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strconv"
)

// bySelf lets refreshd measure itself.
func bySelf(program string, flags ...string) run {
	return func(ctx context.Context, s *server, n int) (result, error) {
		args := append([]string{"bench", "--redis", "redis://" + s.addr, "--models", strconv.Itoa(n), "--paced", "0", "-o", "json"}, flags...)
		output, err := exec.CommandContext(ctx, program, args...).Output()
		if err != nil {
			return result{}, fmt.Errorf("refreshd bench: %w", err)
		}
		var report struct {
			PerSecond   float64 `json:"cycles_per_second"`
			RedisMicros float64 `json:"redis_cpu_us_per_cycle"`
		}
		err = json.Unmarshal(output, &report)
		return result{perSecond: report.PerSecond, redisMicros: report.RedisMicros}, err
	}
}
