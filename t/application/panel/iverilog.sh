#!/bin/bash
# Packages: iverilog. Needs: iverilog vvp
# A circuit of gates and registers, simulated.
cat >work.v <<'END'
module work;
  reg clk = 0, reset = 1; reg [31:0] s = 1; reg [63:0] sum = 0; integer k;
  reg [31:0] memory [0:1023];
  always #5 clk = !clk;
  always @(posedge clk) if (!reset) begin
    s <= {s[30:0], s[31] ^ s[21] ^ s[1] ^ s[0]};
    memory[s[9:0]] <= memory[s[19:10]] + s;
    sum <= sum + (memory[s[9:0]] ^ {s[15:0], s[31:16]});
  end
  initial begin
    for (k = 0; k < 1024; k = k + 1) memory[k] = k;
    #20 reset = 0; #15000000 $display("%h %h", s, sum); $finish(0);
  end
endmodule
END
iverilog -o work work.v
echo ready
vvp -n work
echo "status $?"
