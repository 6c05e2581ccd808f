#!/bin/bash
# Packages: blender. Needs: blender
# A picture by the threads of a renderer, without a display.
export HOME=$PWD XDG_RUNTIME_DIR=$PWD
cat >draw.py <<'END'
import bpy

for k in range(12):
    bpy.ops.mesh.primitive_uv_sphere_add(segments=32, location=(k % 4 - 1.5, k // 4 - 1, (k * 7) % 3), radius=0.4)
scene = bpy.context.scene
scene.render.engine = "CYCLES"
scene.cycles.device = "CPU"
scene.cycles.samples = 12
scene.cycles.use_denoising = False
scene.render.threads_mode, scene.render.threads = "FIXED", 2
scene.render.resolution_x, scene.render.resolution_y, scene.render.resolution_percentage = 200, 150, 100
scene.render.image_settings.file_format = "BMP"
scene.render.filepath = "picture.bmp"
bpy.ops.render.render(write_still=True)
END
echo ready
blender -b --factory-startup -P draw.py >blender.log 2>&1
echo "status $?"
cksum picture.bmp
