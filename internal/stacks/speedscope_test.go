package stacks

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/symfilter/symfilter/internal/testenv"
)

func TestSpeedscopeStacks(t *testing.T) {
	p := heapProfile()
	p.Values = append(p.Values, ValueType{"time", "nanoseconds"})
	for i := range p.Samples {
		p.Samples[i].Values = append(p.Samples[i].Values, int64(i%2))
	}
	var out strings.Builder
	if err := p.WriteSpeedscope(&out, "a \"profile\" <&>"); err != nil {
		t.Fatal(err)
	}
	want := `{"$schema":"https://www.speedscope.app/file-format-schema.json","exporter":"symfilter","name":"a \"profile\" <&>","activeProfileIndex":1,` +
		`"shared":{"frames":[{"name":"main","file":"main.cc","line":3},{"name":"Vec::push(int; int)","file":"vec.h","line":40},{"name":"libx.so+0x1234"},{"name":"0x10"},{"name":"[empty stack]"}]},` +
		`"profiles":[{"type":"sampled","name":"objects, a \"profile\" <&>","unit":"none","startValue":0,"samples":[[4],[0,1,3],[0,1,2]],"weights":[1,1,3],"endValue":5},` +
		`{"type":"sampled","name":"space, a \"profile\" <&>","unit":"bytes","startValue":0,"samples":[[4],[0,1,3],[0,1,2]],"weights":[5,1,300],"endValue":306},` +
		`{"type":"sampled","name":"time, a \"profile\" <&>","unit":"nanoseconds","startValue":0,"samples":[[0,1,3],[0,1,2]],"weights":[1,1],"endValue":2}]}` + "\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	schema, err := jsonschema.NewCompiler().Compile(testenv.FileURL(filepath.Join("testdata", "speedscope.schema.json")))
	if err != nil {
		t.Fatal(err)
	}
	object, err := jsonschema.UnmarshalJSON(strings.NewReader(out.String()))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(object); err != nil {
		t.Error(err)
	}
}
