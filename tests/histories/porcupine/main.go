// A second judge of histories: porcupine's search for an order in which everything can have
// happened, with a model of its own.
//
//	judge FILE            slices of a history, as check_history --slices writes them
//	judge -examples DIR   histories that must pass, and those that must fail where its model sees it
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

const (
	entriesMax = 2000 // of one key, as check_history cuts them
	patience   = 20 * time.Second
	atOnce     = 2
)

type verdict struct {
	key        string
	operations int
	result     porcupine.CheckResult
}

func judge(h *history) []verdict {
	var verdicts []verdict
	var mutex sync.Mutex
	var running sync.WaitGroup
	room := make(chan struct{}, atOnce)
	for _, keys := range h.groups() {
		running.Add(1)
		room <- struct{}{}
		go func() {
			defer running.Done()
			v := h.judge(keys)
			mutex.Lock()
			verdicts = append(verdicts, v)
			mutex.Unlock()
			<-room
		}()
	}
	running.Wait()
	sort.Slice(verdicts, func(i, j int) bool { return verdicts[i].key < verdicts[j].key })
	return verdicts
}

// Keys that were asked for in one step are judged together, all others alone. The search is not
// longer for many: each has a share of the entries.
func (h *history) judge(keys []string) verdict {
	v := verdict{key: strings.Join(keys, ", ")}
	share := entriesMax / len(keys)
	var slices [][]step
	for _, key := range keys {
		entries := h.keys[key]
		entries = entries[:min(len(entries), share)]
		v.operations += len(entries)
		slices = append(slices, h.slice(entries, share))
	}
	if len(keys) == 1 {
		v.result = porcupine.CheckOperationsTimeout(model.ToModel(), ofKey(slices[0]), patience)
	} else if h.contradicts(keys) {
		v.result = porcupine.Illegal
	} else {
		v.result = porcupine.CheckOperationsTimeout(groupModel.ToModel(), ofGroup(slices), patience)
	}
	return v
}

func judgeFile(path string) error {
	h, err := readHistory(path)
	if err != nil {
		return err
	}
	operations, illegal, unknown := 0, 0, 0
	for _, v := range judge(h) {
		operations += v.operations
		switch v.result {
		case porcupine.Illegal:
			illegal++
			fmt.Printf("porcupine: %s: no order of its %d operations is legal\n", v.key, v.operations)
		case porcupine.Unknown:
			unknown++
			fmt.Printf("porcupine: %s: not decided within %v\n", v.key, patience)
		}
	}
	fmt.Printf("porcupine: %d operations on %d keys, %d of which in groups: %d illegal, %d not decided\n",
		operations, len(h.keys), h.grouped(), illegal, unknown)
	if illegal > 0 {
		return fmt.Errorf("%s cannot be true", path)
	}
	return nil
}

// What the model sees: not who was turned away or overtaken, nor what a server may promise.
func sees(name string) bool {
	unseen := []string{
		"I4_", "I5_", "I11_", "I12_", "I13_", "I14_", "I16_", "I6_ticket_used_twice",
		"I8_held_again", "I8_reboot_undoes_an_end", "I8_failover_end_undone",
		"I8_failover_release_undone",
	}
	for _, part := range unseen {
		if strings.Contains(name, part) {
			return false
		}
	}
	return true
}

func judgeExamples(folder string) error {
	paths, err := filepath.Glob(filepath.Join(folder, "*.jsonl"))
	if err != nil {
		return err
	}
	wrong, refused := 0, 0
	for _, path := range paths {
		name := filepath.Base(path)
		h, err := readHistory(path)
		if err != nil {
			return err
		}
		mustFail := strings.HasPrefix(name, "fails_") && sees(name)
		result := porcupine.Ok
		for _, v := range judge(h) {
			if v.result != porcupine.Ok {
				result = v.result
			}
		}
		if result == porcupine.Illegal {
			refused++
		}
		if (result == porcupine.Illegal) != mustFail {
			wrong++
			fmt.Printf("porcupine: %s is judged %s\n", name, result)
		}
	}
	fmt.Printf("porcupine: %d examples, %d refused, %d judged wrongly\n", len(paths), refused, wrong)
	if wrong > 0 || len(paths) == 0 {
		return fmt.Errorf("the model is not what the examples are")
	}
	return nil
}

func main() {
	examples := flag.String("examples", "", "a folder of histories whose names say what they are")
	flag.Parse()
	var err error
	switch {
	case *examples != "":
		err = judgeExamples(*examples)
	case flag.NArg() == 1:
		err = judgeFile(flag.Arg(0))
	default:
		err = fmt.Errorf("usage: judge FILE, or judge -examples DIR")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "judge:", err)
		os.Exit(1)
	}
}
