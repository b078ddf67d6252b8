// What yosys is given to synthesise: an arithmetic unit and a multiplier; WIDTH says how much work that is.
module unit #(parameter WIDTH = 32) (input [WIDTH-1:0] a, b, input [3:0] op, input clk, output reg [WIDTH-1:0] y);
  always @(posedge clk)
    case (op)
      0: y <= a + b;
      1: y <= a - b;
      2: y <= a & b;
      3: y <= a | b;
      4: y <= a ^ b;
      5: y <= a << b[2:0];
      6: y <= a >> b[2:0];
      7: y <= a < b;
      8: y <= a * b;
      default: y <= ~a;
    endcase
endmodule
