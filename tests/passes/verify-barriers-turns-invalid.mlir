// RUN: kiln-opt %s -split-input-file -verify-diagnostics --kiln-verify-barriers

// Turns as they may be: in a loop, in both sides of a conditional, in one side both, and once more after their end.
// What lets a warp alone meet may stand in a turn, and all meet outside of it.
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @fine(%n: i32, %which: i1) attributes {tile.num_warps = 8 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    tile_gpu.turns_begin
    scf.for %i = %c0 to %n step %c1 : i32 {
      tile_gpu.turn_take
      tile_gpu.warp_barrier
      scf.if %which {
        tile_gpu.turn_pass
      } else {
        tile_gpu.turn_pass
      }
      tile_gpu.barrier
      scf.if %which {
        tile_gpu.turn_take
        tile_gpu.turn_pass
      }
    }
    tile_gpu.turns_end
    tile_gpu.barrier
    tile_gpu.turns_begin
    tile_gpu.turns_end
    return
  }
}

// -----

// Taken before they have begun.
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @no_begin() attributes {tile.num_warps = 8 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    // expected-error @+1 {{comes where no turns have begun: it is for where it is another warpgroup's turn}}
    tile_gpu.turn_take
    return
  }
}

// -----

// Begun twice.
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @twice() attributes {tile.num_warps = 8 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    tile_gpu.turns_begin
    // expected-error @+1 {{comes where it is another warpgroup's turn: it is for where no turns have begun}}
    tile_gpu.turns_begin
    return
  }
}

// -----

// Passed on without having been taken.
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @no_take() attributes {tile.num_warps = 8 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    tile_gpu.turns_begin
    // expected-error @+1 {{comes where it is another warpgroup's turn: it is for where it is this warpgroup's turn}}
    tile_gpu.turn_pass
    tile_gpu.turns_end
    return
  }
}

// -----

// Taken again without having been passed on.
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @no_pass() attributes {tile.num_warps = 8 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    tile_gpu.turns_begin
    tile_gpu.turn_take
    // expected-error @+1 {{comes where it is this warpgroup's turn: it is for where it is another warpgroup's turn}}
    tile_gpu.turn_take
    tile_gpu.turn_pass
    tile_gpu.turns_end
    return
  }
}

// -----

// Ended in a turn.
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @ended_in_turn() attributes {tile.num_warps = 8 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    tile_gpu.turns_begin
    tile_gpu.turn_take
    // expected-error @+1 {{comes where it is this warpgroup's turn: it is for where it is another warpgroup's turn}}
    tile_gpu.turns_end
    return
  }
}

// -----

// Ended without a begin.
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @end_alone() attributes {tile.num_warps = 8 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    // expected-error @+1 {{comes where no turns have begun: it is for where it is another warpgroup's turn}}
    tile_gpu.turns_end
    return
  }
}

// -----

// The next round would take the turn once more.
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @round(%n: i32) attributes {tile.num_warps = 8 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    tile_gpu.turns_begin
    // expected-error @+1 {{a round ends where it is this warpgroup's turn, and began where it is another warpgroup's turn}}
    scf.for %i = %c0 to %n step %c1 : i32 {
      tile_gpu.turn_take
    }
    tile_gpu.turn_pass
    tile_gpu.turns_end
    return
  }
}

// -----

// Warps that go different ways have different turns.
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @side(%which: i1) attributes {tile.num_warps = 8 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    tile_gpu.turns_begin
    // expected-error @+1 {{one side ends where it is this warpgroup's turn, the other where it is another warpgroup's turn}}
    scf.if %which {
      tile_gpu.turn_take
    }
    tile_gpu.turn_pass
    tile_gpu.turns_end
    return
  }
}

// -----

// They begin on one side alone.
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @begun_on_a_side(%which: i1) attributes {tile.num_warps = 8 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    // expected-error @+1 {{one side ends where it is another warpgroup's turn, the other where no turns have begun}}
    scf.if %which {
      tile_gpu.turns_begin
    }
    return
  }
}

// -----

// A barrier stays as the turns leave it: the kernel has to end them.
module attributes {tile_gpu.target = "sm_90a"} {
  // expected-error @+1 {{the kernel ends where it is another warpgroup's turn, and began where no turns have begun}}
  func.func @no_end(%n: i32) attributes {tile.num_warps = 8 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    tile_gpu.turns_begin
    scf.for %i = %c0 to %n step %c1 : i32 {
      tile_gpu.turn_take
      tile_gpu.turn_pass
    }
    return
  }
}

// -----

// The others wait for their turns and never get to the barrier.
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @barrier(%n: i32) attributes {tile.num_warps = 8 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    tile_gpu.turns_begin
    scf.for %i = %c0 to %n step %c1 : i32 {
      tile_gpu.turn_take
      // expected-error @+1 {{comes where it is this warpgroup's turn: the others never come here, they wait for their turns}}
      tile_gpu.barrier
      tile_gpu.turn_pass
    }
    tile_gpu.turns_end
    return
  }
}

// -----

// Nor where they meet in a conditional.
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @barrier_inside(%which: i1) attributes {tile.num_warps = 8 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    tile_gpu.turns_begin
    tile_gpu.turn_take
    scf.if %which {
      // expected-error @+1 {{comes where it is this warpgroup's turn: the others never come here, they wait for their turns}}
      tile_gpu.barrier
    }
    tile_gpu.turn_pass
    tile_gpu.turns_end
    return
  }
}
