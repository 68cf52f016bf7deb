package collector

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/confmap/confmaptest"
)

// optionsPage is the path of the page that lists the options.
var optionsPage = filepath.Join("..", "docs", "reference", "collector.md")

// The page must list the options of config.schema.yaml, in the order of Config and with its
// defaults. With UPDATE=1, the test writes the page.
func TestTheReferenceHasTheOptionsThatThereAre(t *testing.T) {
	schema, err := confmaptest.LoadConf("config.schema.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString(`# Options of the processor symfilter

The options of the [OpenTelemetry Collector processor](../../collector/README.md), below ` + "`processors: symfilter:`" + `.
` + "`a::b`" + ` is the key ` + "`b`" + ` in the section ` + "`a`" + `. The Collector checks a configuration by its command ` + "`validate`" + `.

<!-- Written from collector/config.schema.yaml and the defaults in collector/config.go: make docs -->

| option | value | default | |
|---|---|---|---|
`)
	rows(t, &b, "", schema.ToStringMap(), reflect.ValueOf(createDefaultConfig()).Elem())
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(optionsPage, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(optionsPage); err != nil || string(got) != b.String() {
		t.Errorf("docs/reference/collector.md has not the options that there are (%v): make docs writes it", err)
	}
}

// rows writes a row for each option of a struct. It reports options that are only in the schema or
// only in the struct.
func rows(t *testing.T, b *strings.Builder, prefix string, schema map[string]any, of reflect.Value) {
	t.Helper()
	properties, _ := schema["properties"].(map[string]any)
	known := 0
	for i := range of.NumField() {
		name := of.Type().Field(i).Tag.Get("mapstructure")
		if name == "" {
			continue
		}
		known++
		property, ok := properties[name].(map[string]any)
		if !ok {
			t.Errorf("config.schema.yaml lacks %s%s", prefix, name)
			continue
		}
		if property["type"] == "object" {
			rows(t, b, prefix+name+"::", property, of.Field(i))
			continue
		}
		fmt.Fprintf(b, "| `%s%s` | %s | %s | %s |\n", prefix, name, kindOf(property), preset(of.Field(i)), strings.ReplaceAll(property["description"].(string), "|", `\|`))
	}
	if known != len(properties) {
		t.Errorf("config.schema.yaml has %d options in the section %q, Config has %d", len(properties), prefix, known)
	}
}

// kindOf returns the kind of an option's value.
func kindOf(property map[string]any) string {
	if words, ok := property["enum"].([]any); ok {
		var all []string
		for _, word := range words {
			all = append(all, fmt.Sprint(word))
		}
		return strings.Join(all, ", ")
	}
	kind := fmt.Sprint(property["type"])
	switch {
	case property["format"] != nil:
		return fmt.Sprint(property["format"])
	case kind == "array":
		return "list"
	case kind == "boolean":
		return "true, false"
	case kind == "string":
		return "text"
	}
	return kind
}

// preset returns the default of an option, or "" for an empty default.
func preset(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case ByteSize:
		return fmt.Sprintf("`%dMiB`", x>>20)
	case time.Duration:
		text := x.String()
		for _, zero := range []string{"m0s", "h0m"} { // 1h0m0s
			if strings.HasSuffix(text, zero) {
				text = strings.TrimSuffix(text, zero[1:])
			}
		}
		return "`" + text + "`"
	case []string:
		if len(x) == 0 {
			return ""
		}
		return "`" + strings.Join(x, "`, `") + "`"
	case bool, int:
		return fmt.Sprintf("`%v`", x)
	case string:
		if x != "" {
			return "`" + x + "`"
		}
	}
	return ""
}
