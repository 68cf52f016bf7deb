package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

// materials writes a bill of materials for each product, as CycloneDX 1.5 in JSON. It lists the
// module of the command, Go's standard library, and the linked modules, as recorded in the
// product.
func (r *material) materials() error {
	for i := range r.products {
		p := &r.products[i]
		bom := cyclonedx.NewBOM()
		root := component(&p.info.Main)
		root.Type, root.Name = cyclonedx.ComponentTypeApplication, p.info.Path
		bom.Metadata = &cyclonedx.Metadata{Timestamp: r.date.UTC().Format(time.RFC3339), Component: &root}
		std := debug.Module{Path: "std", Version: strings.TrimPrefix(p.info.GoVersion, "go")}
		linked := []cyclonedx.Component{component(&std)}
		needs := []string{linked[0].BOMRef}
		for _, m := range p.info.Deps {
			if m.Replace != nil {
				return fmt.Errorf("the module %s is replaced by %s; a release takes modules as they are published", m.Path, m.Replace.Path)
			}
			linked = append(linked, component(m))
			needs = append(needs, linked[len(linked)-1].BOMRef)
		}
		bom.Components = &linked
		bom.Dependencies = &[]cyclonedx.Dependency{{Ref: root.BOMRef, Dependencies: &needs}}
		var out bytes.Buffer
		encoder := cyclonedx.NewBOMEncoder(&out, cyclonedx.BOMFileFormatJSON).SetPretty(true)
		if err := encoder.EncodeVersion(bom, cyclonedx.SpecVersion1_5); err != nil {
			return err
		}
		name := fmt.Sprintf("%s_%s_%s_%s.cdx.json", p.command, r.plain(), p.os, p.arch)
		if err := os.WriteFile(filepath.Join(r.output, name), out.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// component returns a module as a component, with its sum from go.sum.
func component(m *debug.Module) cyclonedx.Component {
	c := cyclonedx.Component{Type: cyclonedx.ComponentTypeLibrary, Name: m.Path, Version: m.Version}
	c.PackageURL = "pkg:golang/" + m.Path + "@" + m.Version
	c.BOMRef = c.PackageURL
	if m.Sum != "" {
		c.Properties = &[]cyclonedx.Property{{Name: "go.sum", Value: m.Sum}}
	}
	return c
}
