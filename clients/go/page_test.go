package lockd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The code that the pages show stands in example_test.go, which is run, and prints what they say.
func TestThePagesShowWhatRuns(t *testing.T) {
	examples, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	code := dedented(string(examples))
	for _, path := range []string{"README.md", filepath.Join("..", "..", "docs", "go.md")} {
		page, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, block := range blocksOf(string(page), "```go\n") {
			if !strings.Contains(code, dedented(block)) {
				t.Errorf("%s: this is not in example_test.go:\n%s", path, block)
			}
		}
		for _, block := range blocksOf(string(page), "It prints:\n\n```\n") {
			comment := "// Output:\n// " + strings.ReplaceAll(strings.TrimSpace(block), "\n", "\n// ")
			if !strings.Contains(code, comment) {
				t.Errorf("%s: nothing in example_test.go prints\n%s", path, block)
			}
		}
	}
}

// blocksOf returns what stands between each such opening and the next fence.
func blocksOf(page, opening string) []string {
	var blocks []string
	for _, rest := range strings.Split(page, opening)[1:] {
		block, _, _ := strings.Cut(rest, "```")
		blocks = append(blocks, block)
	}
	return blocks
}

func dedented(text string) string {
	var lines []string
	for _, line := range strings.Split(text, "\n") {
		lines = append(lines, strings.TrimSpace(line))
	}
	return strings.Join(lines, "\n")
}
