package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// images writes an OCI image layout for each command, with an image for each target of Linux.
// An image is like the Dockerfile's: one static program, which does not run as root. The image
// of symfilter also has links by which it answers like other symbolizers.
func (r *material) images() error {
	for _, command := range []string{"symfilter", "symfilterd"} {
		l := layout{}
		index := v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex}
		for i := range r.products {
			p := &r.products[i]
			if p.os != "linux" || p.command != command {
				continue
			}
			d, err := r.image(&l, p)
			if err != nil {
				return fmt.Errorf("image of %s for %s: %w", command, p.arch, err)
			}
			index.Manifests = append(index.Manifests, d)
		}
		if len(index.Manifests) == 0 {
			continue
		}
		all, err := l.blob(v1.MediaTypeImageIndex, index)
		if err != nil {
			return err
		}
		all.Annotations = map[string]string{v1.AnnotationRefName: r.plain()}
		if err := l.write(filepath.Join(r.output, fmt.Sprintf("%s_%s_image.tar", command, r.plain())), all, r); err != nil {
			return err
		}
	}
	return nil
}

// image adds the image of a product to a layout, and returns the descriptor of its manifest.
func (r *material) image(l *layout, p *product) (v1.Descriptor, error) {
	program, err := os.ReadFile(p.path)
	if err != nil {
		return v1.Descriptor{}, err
	}
	all := []file{{name: p.command, mode: 0o755, data: program}}
	if p.command == "symfilter" {
		for _, name := range r.symbolizers {
			all = append(all, file{name: strings.TrimPrefix(linksFolder, "/") + "/" + name, mode: 0o777, link: "../../../symfilter"})
		}
	}
	unpacked, err := tarOf(all, r.date)
	if err != nil {
		return v1.Descriptor{}, err
	}
	packed, err := zipped(unpacked, gzip.DefaultCompression)
	if err != nil {
		return v1.Descriptor{}, err
	}
	layer := l.add(v1.MediaTypeImageLayerGzip, packed)

	platform := v1.Platform{OS: p.os, Architecture: p.arch}
	if p.arch == "arm" {
		platform.Variant = "v7"
	}
	c := v1.Image{Created: &r.date, Author: maintainer, Platform: platform}
	c.Config = v1.ImageConfig{
		User: "65532:65532", Entrypoint: []string{"/" + p.command},
		Labels: map[string]string{
			v1.AnnotationTitle: p.command, v1.AnnotationVersion: r.plain(), v1.AnnotationLicenses: "Apache-2.0",
			v1.AnnotationSource: "https://github.com/symfilter/symfilter", v1.AnnotationRevision: setting(p.info, "vcs.revision"),
		},
	}
	if p.command == "symfilterd" {
		c.Config.Cmd = []string{"--config", "/etc/symfilter.yaml"}
	}
	c.RootFS = v1.RootFS{Type: "layers", DiffIDs: []digest.Digest{digest.FromBytes(unpacked)}}
	c.History = []v1.History{{Created: &r.date, CreatedBy: "scripts/release"}}
	configuration, err := l.blob(v1.MediaTypeImageConfig, c)
	if err != nil {
		return v1.Descriptor{}, err
	}
	d, err := l.blob(v1.MediaTypeImageManifest, v1.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageManifest,
		Config: configuration, Layers: []v1.Descriptor{layer},
	})
	d.Platform = &platform
	return d, err
}

// layout is the content of an image layout, by digest.
type layout map[digest.Digest][]byte

// add adds data, and returns its descriptor.
func (l *layout) add(mediaType string, data []byte) v1.Descriptor {
	d := v1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(data), Size: int64(len(data))}
	(*l)[d.Digest] = data
	return d
}

// blob adds value as JSON, and returns its descriptor.
func (l *layout) blob(mediaType string, value any) (v1.Descriptor, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return v1.Descriptor{}, err
	}
	return l.add(mediaType, data), nil
}

// write writes the layout as a tar file. The index of the layout has one entry.
func (l *layout) write(path string, entry v1.Descriptor, r *material) error {
	index, err := json.Marshal(v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex, Manifests: []v1.Descriptor{entry}})
	if err != nil {
		return err
	}
	version, err := json.Marshal(v1.ImageLayout{Version: v1.ImageLayoutVersion})
	if err != nil {
		return err
	}
	all := []file{{name: v1.ImageLayoutFile, mode: 0o644, data: version}, {name: v1.ImageIndexFile, mode: 0o644, data: index}}
	for d, data := range *l {
		all = append(all, file{name: v1.ImageBlobsDir + "/" + strings.ReplaceAll(d.String(), ":", "/"), mode: 0o644, data: data})
	}
	data, err := tarOf(all, r.date)
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}
