// Command driver has the Go client do the steps of scenarios.
//
// Each line of the input is a job, and is answered by a line of reports; jobs run side by side. The
// README of the suite says what is in them.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
)

type job struct {
	ID               int      `json:"id"`
	Addresses        []string `json:"addresses"`
	IsCluster        bool     `json:"is_cluster"`
	Token            string   `json:"token"`
	TokenFile        string   `json:"token_file"`
	ConnectTimeoutMs int      `json:"connect_timeout_ms"`
	ReplyTimeoutMs   int      `json:"reply_timeout_ms"`
	ReleaseTimeoutMs int      `json:"release_timeout_ms"`
	Steps            []step   `json:"steps"`
}

type step struct {
	Do            string   `json:"do"`
	Key           string   `json:"key"`
	Keys          []string `json:"keys"`
	WaitMs        *int     `json:"wait_ms"`
	LeaseS        *int     `json:"lease_s"`
	Shared        bool     `json:"shared"`
	Limit         *int     `json:"limit"`
	Permits       *int     `json:"permits"`
	MaxHoldMs     int      `json:"max_hold_ms"`
	Hold          string   `json:"hold"`
	Place         string   `json:"place"`
	CancelAfterMs int      `json:"cancel_after_ms"`
	Channel       string   `json:"channel"`
	Payload       string   `json:"payload"`
	Pattern       string   `json:"pattern"`
	Group         string   `json:"group"`
	Ms            int      `json:"ms"`
}

// report says what came of a step: its outcome, and what else there is to it.
type report map[string]any

func main() {
	slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, nil)))
	var output sync.Mutex
	say := func(what any) {
		text, err := json.Marshal(what)
		if err != nil {
			panic(err)
		}
		output.Lock()
		defer output.Unlock()
		fmt.Println(string(text))
	}
	say(map[string]any{"lacks": []string{}})
	var running sync.WaitGroup
	for input := bufio.NewReader(os.Stdin); ; {
		line, err := input.ReadBytes('\n')
		if err != nil {
			break
		}
		var next job
		if err := json.Unmarshal(line, &next); err != nil {
			panic(err)
		}
		running.Add(1)
		go func() {
			defer running.Done()
			say(map[string]any{"id": next.ID, "reports": run(&next)})
		}()
	}
	running.Wait()
}
